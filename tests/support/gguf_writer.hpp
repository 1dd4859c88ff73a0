// Writes small GGUF files for tests, good ones and broken ones: it checks nothing and shares no code with the reader.
//   GgufWriter w;
//   w.set("general.architecture", "llama").set("llama.block_count", uint32_t{1});
//   w.tensor("output_norm.weight", GgufWriter::kF32, {32}, std::string(128, '\0'));
//   w.write(path);
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/support.hpp"

namespace minfer::test {

class GgufWriter {
 public:
  // Ids of the format, for what tests need.
  static constexpr uint32_t kF32 = 0, kF16 = 1, kQ8_0 = 8, kIQ4_XS = 23;  // tensor types
  static constexpr uint32_t kString = 8, kArray = 9;                      // value types
  template <class T>
  static constexpr uint32_t value_type() {
    if constexpr (std::is_same_v<T, bool>)
      return 7;
    else if constexpr (std::is_same_v<T, float>)
      return 6;
    else if constexpr (std::is_same_v<T, double>)
      return 12;
    else if constexpr (sizeof(T) == 8)
      return std::is_signed_v<T> ? 11 : 10;
    else
      return (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 2 : 4) + (std::is_signed_v<T> ? 1 : 0);
  }

  uint32_t version = 3;
  uint64_t alignment = 32;            // of the layout; set("general.alignment", ...) writes the key
  std::optional<uint64_t> key_count;  // claimed instead of the true one
  std::optional<uint64_t> tensor_count;

  struct TensorRecord {
    std::string name;
    uint32_t type = kF32;
    std::vector<uint64_t> dims;
    std::string data;
    std::optional<uint64_t> offset;  // instead of the running one
    std::optional<uint32_t> n_dims;  // instead of dims.size()
  };
  std::vector<TensorRecord> tensors;

  template <class T>
  static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string raw_string(std::string_view value) { return raw(uint64_t{value.size()}) + std::string(value); }

  GgufWriter& set_raw(std::string_view key, uint32_t type, std::string_view bytes) {
    keys_ += raw_string(key) + raw(type) + std::string(bytes);
    ++n_keys_;
    return *this;
  }
  GgufWriter& set(std::string_view key, std::string_view value) { return set_raw(key, kString, raw_string(value)); }
  GgufWriter& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  template <class T>
  requires std::is_arithmetic_v<T> GgufWriter& set(std::string_view key, T value) { return set_raw(key, value_type<T>(), raw(value)); }
  template <class T>
  requires std::is_arithmetic_v<T> GgufWriter& set(std::string_view key, const std::vector<T>& values) {
    std::string bytes = raw(value_type<T>()) + raw(uint64_t{values.size()});
    for (const T value : values) bytes += raw(value);
    return set_raw(key, kArray, bytes);
  }
  GgufWriter& set(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = raw(kString) + raw(uint64_t{values.size()});
    for (const std::string& value : values) bytes += raw_string(value);
    return set_raw(key, kArray, bytes);
  }

  GgufWriter& tensor(std::string_view name, uint32_t type, std::vector<uint64_t> dims, std::string data) {
    tensors.push_back({std::string(name), type, std::move(dims), std::move(data), {}, {}});
    return *this;
  }
  GgufWriter& tensor_f32(std::string_view name, std::vector<uint64_t> dims, std::span<const float> values) {
    return tensor(name, kF32, std::move(dims), std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
  }

  std::string bytes() const {
    std::string out = "GGUF" + raw(version) + raw(tensor_count.value_or(tensors.size())) + raw(key_count.value_or(n_keys_)) + keys_;
    uint64_t offset = 0;
    for (const TensorRecord& t : tensors) {
      out += raw_string(t.name) + raw(t.n_dims.value_or(static_cast<uint32_t>(t.dims.size())));
      for (const uint64_t dim : t.dims) out += raw(dim);
      out += raw(t.type) + raw(t.offset.value_or(offset));
      offset += padded(t.data.size());
    }
    out.resize(padded(out.size()));
    for (const TensorRecord& t : tensors) {
      out += t.data;
      out.resize(padded(out.size()));
    }
    return out;
  }
  void write(const std::filesystem::path& path) const { write_file(path, bytes()); }

 private:
  uint64_t padded(uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }

  std::string keys_;
  uint64_t n_keys_ = 0;
};

}  // namespace minfer::test
