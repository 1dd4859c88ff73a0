// The engine's Device over a backend plugin's C table. Every object holds its plugin open; it must go before its device.
#pragma once

#include <memory>
#include <vector>

#include "engine/device.hpp"
#include "plugin/loader.hpp"

namespace minfer::plugin {

// Opens every device the plugin offers. kNotFound where it offers none.
Result<std::vector<std::unique_ptr<Device>>> open_devices(const std::shared_ptr<OpenPlugin>& plugin);

}  // namespace minfer::plugin
