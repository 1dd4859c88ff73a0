// The device as the host sees it: memory, KV regions, plans.
#pragma once

#include "opencl_plan.hpp"
#include "rope_tables.hpp"
#include "weights.hpp"

namespace minfer::opencl {

class OpenclDevice;

class OpenclBuffer final : public sdk::Buffer {
 public:
  OpenclBuffer(OpenclDevice& device, uint64_t size_bytes);
  void write(uint64_t offset, const void* src, uint64_t size_bytes) override;
  void read(uint64_t offset, void* dst, uint64_t size_bytes) override;
  cl_mem mem() const { return mem_.get(); }

 private:
  void check_range(uint64_t offset, uint64_t size_bytes) const;

  OpenclDevice& device_;
  uint64_t size_bytes_;
  Mem mem_;
};

// Left sides of products as 8-bit integers. One plan of a device runs at a time, so that all share the memory; a plan keeps what it
// was made with when a later one needs more.
struct QuantizedRows {
  uint64_t elements = 0;
  SharedMem q, scale, sums;
};

class OpenclDevice final : public sdk::Device {
 public:
  explicit OpenclDevice(const FoundDevice& device);

  sdk::DeviceInfo info() override;
  void supports(const sdk::GraphView& graph, uint8_t* mask) override;
  std::unique_ptr<sdk::Weights> import_weights(const sdk::WeightList& list) override;
  std::unique_ptr<sdk::Buffer> alloc(uint64_t size_bytes) override;
  sdk::KvBytes kv_region_bytes(const mi_kv_layout& layout) override;
  void kv_copy_rows(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_copy* copies, uint32_t n_copies) override;
  void kv_rotate(const mi_kv_layout& layout, sdk::Buffer& k, const mi_kv_rotation& rotation, sdk::Weights* weights, const mi_kv_rows* rows,
                 uint32_t n_ranges) override;
  void kv_export(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges, void* k_rows,
                 void* v_rows) override;
  void kv_import(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges, const void* k_rows,
                 const void* v_rows) override;
  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView& graph, sdk::Weights* weights) override;
  // Waits, and reports what a kernel found wrong.
  void sync() override { throw_failure(context_.finish()); }

  const Context& context() const { return context_; }

 private:
  static void throw_failure(const Context::Failure& failure);

  FoundDevice found_;
  Context context_;
  QuantizedRows quantized_;
  RopeTables rope_tables_;
};

// True where kernels can work on regions of this layout.
bool kv_layout_known(const mi_kv_layout& layout);

}  // namespace minfer::opencl
