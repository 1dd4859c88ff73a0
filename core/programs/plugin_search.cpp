#include "programs/plugin_search.hpp"

#include "base/env.hpp"

namespace minfer::programs {

plugin::SearchPaths default_search() {
  plugin::SearchPaths search = plugin::standard_search();
  search.env_dirs = env("MINFER_PLUGIN_PATH").value_or("");
  return search;
}

}  // namespace minfer::programs
