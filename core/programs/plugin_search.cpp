#include "programs/plugin_search.hpp"

#include "base/env.hpp"

namespace minfer::programs {

plugin::SearchPaths default_search() {
  plugin::SearchPaths search;
  search.env_dirs = env("MINFER_PLUGIN_PATH").value_or("");
  std::error_code ec;
  const std::filesystem::path exe = std::filesystem::read_symlink("/proc/self/exe", ec);
  if (!ec) search.exe_dir = exe.parent_path();
  search.prefix_dir = MINFER_INSTALL_PLUGIN_DIR;
  return search;
}

}  // namespace minfer::programs
