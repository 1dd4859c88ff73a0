// Every comparison between a plugin and this core, made once and here: plugins state facts and compare nothing.
// Until the ABI is frozen, a plugin fits if it was built from the same ABI headers (their hash); versions only explain.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "minfer/abi/plugin.h"
#include "plugin/manifest.hpp"

namespace minfer::plugin {

struct Refusal {
  Error error;
  std::string hint;
};

// Before loading.
std::optional<Refusal> check_platform(const Manifest& manifest);
std::optional<Refusal> check_manifest_abi(const Manifest& manifest);

// After loading, before open. First the versions, then whether the descriptor is what its manifest promised.
std::optional<Refusal> check_descriptor_abi(const mi_plugin_desc& desc);
std::optional<Refusal> check_descriptor(const mi_plugin_desc& desc, const Manifest& manifest);

// After open: every function that is not optional is there.
std::optional<Refusal> check_table(const mi_backend_v1* table);
std::optional<Refusal> check_table(const mi_arch_v1* table);

}  // namespace minfer::plugin
