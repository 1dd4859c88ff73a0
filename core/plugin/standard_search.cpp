// Where this process finds the plugins that belong to it. Alone in a file because only it knows where the build installs.
#include "plugin/discovery.hpp"

namespace minfer::plugin {

SearchPaths standard_search() {
  SearchPaths search;
  std::error_code ec;
  const std::filesystem::path exe = std::filesystem::read_symlink("/proc/self/exe", ec);
  if (!ec) search.exe_dir = exe.parent_path();
  search.prefix_dir = MINFER_INSTALL_PLUGIN_DIR;
  return search;
}

}  // namespace minfer::plugin
