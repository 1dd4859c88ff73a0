// What a configuration asks for, as the runtime's options. Opens no plugin and no model.
#pragma once

#include "config/config.hpp"
#include "runtime/generate.hpp"
#include "runtime/model.hpp"

namespace minfer {

KvFormat kv_format_of(const ContextConfig& context);

LayerRequest layer_request(const GpuLayers& layers);

// Refuses backend options that are not plain values, with their place. The model's path is left to the caller.
Result<ModelOptions> model_options(const Config& config);

// The plugins found in `search`, with the folders and files of the configuration in front. notice gets lines for people, later those of
// plugins too; trace, unless empty, what plugins tell about their inner work.
std::unique_ptr<plugin::Registry> find_plugins(const PluginConfig& config, plugin::SearchPaths search, const Notice& notice,
                                               const Notice& trace = {});

GenerateOptions generate_options(const Config& config);

}  // namespace minfer
