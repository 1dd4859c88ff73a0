#include "plugin/safety.hpp"

#include <sys/auxv.h>
#include <sys/stat.h>

namespace minfer::plugin {
namespace fs = std::filesystem;

Result<fs::path> canonical_path(const fs::path& path) {
  std::error_code ec;
  fs::path out = fs::canonical(path, ec);
  if (ec == std::errc::no_such_file_or_directory) return not_found("{} does not exist", path.string());
  if (ec) return io_error("{}: {}", path.string(), ec.message());
  return out;
}

std::optional<std::string> world_writable(const fs::path& file) {
  for (fs::path path = file;; path = path.parent_path()) {
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0) return text("the rights of {} cannot be read", path.string());
    const bool folder = S_ISDIR(info.st_mode);
    if ((info.st_mode & S_IWOTH) && !(folder && (info.st_mode & S_ISVTX)))
      return text("the {} {} is writable by everyone", folder ? "folder" : "file", path.string());
    if (path == path.parent_path()) return std::nullopt;
  }
}

bool process_is_privileged() { return getauxval(AT_SECURE) != 0; }

}  // namespace minfer::plugin
