// What a configuration asks for, as the runtime's options. Opens nothing.
#pragma once

#include "config/config.hpp"
#include "runtime/generate.hpp"
#include "runtime/model.hpp"

namespace minfer {

KvFormat kv_format_of(const ContextConfig& context);

// Refuses backend options that are not plain values, with their place. The model's path is left to the caller.
Result<ModelOptions> model_options(const Config& config);

GenerateOptions generate_options(const Config& config);

}  // namespace minfer
