// Loads a plugin's library and finds its one symbol. The only file that knows Boost.DLL.
#pragma once

#include <filesystem>

#include "base/error.hpp"
#include "minfer/abi/plugin.h"
#include "plugin/report.hpp"

namespace minfer::plugin {

struct LoadedQuery {
  mi_plugin_query_fn query = nullptr;
  Stage stage = Stage::kReady;  // kDlopen or kEntry: where it failed
  std::string text;             // the loader's own words
};

// `path` must be canonical: a bare name would be searched for in the current directory. Undefined symbols are found here, not at the
// first call. Thread-safe. A library that was loaded stays loaded until the process ends: its threads, its thread-local
// destructors and vendor code below it may outlive every plugin object.
LoadedQuery load_query(const std::filesystem::path& path);

}  // namespace minfer::plugin
