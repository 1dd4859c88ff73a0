// The engine's ModelArchitecture over an architecture plugin's C table, and the metadata of a model file as the plugin sees it.
#pragma once

#include <memory>
#include <string_view>

#include "engine/architecture.hpp"
#include "plugin/loader.hpp"

namespace minfer::plugin {

struct TensorEntry {
  DType dtype = DType::kF32;
  Shape shape;
};

// Read access to a model file; implemented where files are read. A key that is absent is kNotFound; one of another type, or whose
// value does not fit, is kInvalidArgument; both name the key. u64 takes every type of whole numbers, f64 every type of numbers.
class MetadataSource {
 public:
  virtual ~MetadataSource() = default;
  virtual Result<uint64_t> get_u64(std::string_view key) const = 0;
  virtual Result<double> get_f64(std::string_view key) const = 0;
  virtual Result<bool> get_bool(std::string_view key) const = 0;
  virtual Result<std::string_view> get_string(std::string_view key) const = 0;  // lives as long as the source
  virtual Result<TensorEntry> get_tensor(std::string_view name) const = 0;
};

// How well the architecture fits the file; 0: not at all.
uint32_t match(const OpenPlugin& plugin, const MetadataSource& metadata);

// Validates the hyper-parameters, and every weight against the file: name, shape. The source is not kept.
Result<std::unique_ptr<ModelArchitecture>> create_model(const std::shared_ptr<OpenPlugin>& plugin, const MetadataSource& metadata);

}  // namespace minfer::plugin
