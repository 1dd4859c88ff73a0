// Metadata of a model that exists only in a test: a map that a case may change one entry of.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "plugin/arch_proxy.hpp"

namespace minfer::test {

class FakeMetadata final : public plugin::MetadataSource {
 public:
  using Value = std::variant<uint64_t, double, bool, std::string>;
  std::map<std::string, Value, std::less<>> values;
  std::map<std::string, plugin::TensorEntry, std::less<>> tensors;

  Result<uint64_t> get_u64(std::string_view key) const override { return get<uint64_t>(key, "a whole number"); }
  Result<double> get_f64(std::string_view key) const override {
    const auto found = values.find(key);
    if (found != values.end())
      if (const auto* number = std::get_if<uint64_t>(&found->second)) return static_cast<double>(*number);
    return get<double>(key, "a number");
  }
  Result<bool> get_bool(std::string_view key) const override { return get<bool>(key, "a boolean"); }
  Result<std::string_view> get_string(std::string_view key) const override {
    const auto found = values.find(key);
    if (found == values.end()) return not_found("{} is missing", key);
    if (const auto* text = std::get_if<std::string>(&found->second)) return std::string_view(*text);
    return invalid("{} is not text", key);
  }
  Result<plugin::TensorEntry> get_tensor(std::string_view name) const override {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return not_found("{} is missing", name);
    return found->second;
  }

 private:
  template <class T>
  Result<T> get(std::string_view key, std::string_view what) const {
    const auto found = values.find(key);
    if (found == values.end()) return not_found("{} is missing", key);
    if (const T* value = std::get_if<T>(&found->second)) return *value;
    return invalid("{} is not {}", key, what);
  }
};

}  // namespace minfer::test
