// Where this process finds the plugins that belong to it. Alone in a file because only it knows where the build installs.
#include <dlfcn.h>

#include "plugin/discovery.hpp"

namespace minfer::plugin {

SearchPaths standard_search() {
  SearchPaths search;
  std::error_code ec;
  const std::filesystem::path exe = std::filesystem::read_symlink("/proc/self/exe", ec);
  if (!ec) search.exe_dir = exe.parent_path();
  search.prefix_dir = MINFER_INSTALL_PLUGIN_DIR;
  // Inside libminfer.so, which stands in lib/ of the installation, wherever that was moved.
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&standard_search), &self) != 0 && self.dli_fname) {
    const std::filesystem::path file = std::filesystem::canonical(self.dli_fname, ec);
    if (!ec && file.filename().string().starts_with("libminfer.so")) search.prefix_dir = file.parent_path() / "minfer" / "plugins";
  }
  return search;
}

}  // namespace minfer::plugin
