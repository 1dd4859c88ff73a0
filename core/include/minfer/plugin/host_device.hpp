// minfer plugin SDK: parts for backends that work in ordinary memory of the process. With them a backend is one class with two calls:
// what it supports, and how a plan runs. Weights are borrowed from the file; a KV is not kept, so MI_OP_KV_STORE and MI_OP_ATTENTION
// stay with another backend unless the class overrides kv_region_bytes and kv_copy_rows too.
#ifndef MINFER_PLUGIN_HOST_DEVICE_HPP_
#define MINFER_PLUGIN_HOST_DEVICE_HPP_

#include <algorithm>
#include <utility>
#include <vector>

#include "minfer/plugin/backend.hpp"

MINFER_SDK_BEGIN

// Zeroed, aligned to 64 bytes.
class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(uint64_t size_bytes) : size_(size_bytes) {
    if (size_bytes > std::numeric_limits<size_t>::max() - kAlignment) throw std::bad_alloc();
    data_ = static_cast<char*>(::operator new (static_cast<size_t>(size_bytes) + 1, std::align_val_t{kAlignment}));
    std::memset(data_, 0, static_cast<size_t>(size_bytes));
  }
  ~HostBuffer() override { ::operator delete (data_, std::align_val_t{kAlignment}); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  void* host_ptr() noexcept override { return data_; }
  void write(uint64_t offset, const void* src, uint64_t size_bytes) override {
    check(offset, size_bytes);
    if (size_bytes > 0) std::memcpy(data_ + offset, src, static_cast<size_t>(size_bytes));
  }
  void read(uint64_t offset, void* dst, uint64_t size_bytes) override {
    check(offset, size_bytes);
    if (size_bytes > 0) std::memcpy(dst, data_ + offset, static_cast<size_t>(size_bytes));
  }

 private:
  static constexpr size_t kAlignment = 64;

  void check(uint64_t offset, uint64_t size_bytes) const {
    if (offset > size_ || size_bytes > size_ - offset)
      fail(MI_INVALID_ARGUMENT, "bytes ", offset, " + ", size_bytes, " do not lie in a buffer of ", size_);
  }

  uint64_t size_;
  char* data_;
};

// The weights of one import as they lie in the file: GGUF blocks, row-major (minfer/plugin/dtype.hpp knows their sizes).
class HostWeights final : public Weights {
 public:
  explicit HostWeights(const WeightList& list) {
    for (uint32_t i = 0; i < list.size(); ++i) data_.emplace_back(list[i].id, list[i].data);
    std::sort(data_.begin(), data_.end());
  }
  // Of a value of kind MI_VALUE_WEIGHT, whose index is the id. Shape and type stand in the value itself.
  const void* data(uint32_t id) const {
    const auto it = std::lower_bound(data_.begin(), data_.end(), std::make_pair(id, static_cast<const void*>(nullptr)));
    if (it == data_.end() || it->first != id) fail(MI_INTERNAL, "weight ", id, " was not imported");
    return it->second;
  }

 private:
  std::vector<std::pair<uint32_t, const void*>> data_;
};

// To derive from. What is left to write: supports and create_plan.
class HostDevice : public Device {
 public:
  DeviceInfo info() override { return {name_, description_, MI_DEVICE_HOST, 0, 0}; }
  std::unique_ptr<Weights> import_weights(const WeightList& list) override { return std::make_unique<HostWeights>(list); }
  std::unique_ptr<Buffer> alloc(uint64_t size_bytes) override { return std::make_unique<HostBuffer>(size_bytes); }

 protected:
  // As minfer-plugins and the banner of a run show it.
  HostDevice(std::string name, std::string description) : name_(std::move(name)), description_(std::move(description)) {}

  // For create_plan. Where an activation lies; the pointer stays good as long as the plan.
  static float* f32(const mi_value& value) {
    if (value.kind != MI_VALUE_ACTIVATION || value.dtype != MI_TYPE_F32 || !value.buffer)
      fail(MI_INTERNAL, "a value of kind ", value.kind, " and type ", value.dtype, " is no activation in memory");
    return reinterpret_cast<float*>(static_cast<char*>(Buffer::from(value.buffer)->host_ptr()) + value.offset_bytes);
  }
  static uint64_t n_elements(const mi_value& value) { return value.dims[0] * value.dims[1] * value.dims[2] * value.dims[3]; }
  // The bytes of a weight, from the set that create_plan was given.
  static const void* weight_data(const mi_value& value, Weights* weights) {
    if (value.kind != MI_VALUE_WEIGHT || !weights) fail(MI_INTERNAL, "a value of kind ", value.kind, " is no imported weight");
    return static_cast<HostWeights*>(weights)->data(value.index);
  }

 private:
  std::string name_, description_;
};

// A whole backend of one device, which is made from a `const Host&`: MINFER_EXPORT_BACKEND(OneDevice<MyDevice>, "name", "1.2.0").
// A device that has options reads them in its constructor.
template <class DeviceClass>
class OneDevice final : public Backend {
 public:
  explicit OneDevice(const Host& host) : host_(host) {}
  uint32_t device_count() override { return 1; }
  std::unique_ptr<Device> open_device(uint32_t) override { return std::make_unique<DeviceClass>(host_); }

 private:
  Host host_;
};

MINFER_SDK_END

#endif
