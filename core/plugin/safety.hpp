// May code from this file be loaded? A library that anyone can replace would run as the user: refused unless he allows it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace minfer::plugin {

// The canonical absolute path: symbolic links resolved. kNotFound where the file does not exist.
Result<std::filesystem::path> canonical_path(const std::filesystem::path& path);

// Why the file (canonical) is unsafe, or nothing: the file, or a folder above it, is writable by everyone. A folder with the
// sticky bit (/tmp) does not let others replace what is in it.
std::optional<std::string> world_writable(const std::filesystem::path& file);

// Whether this process runs with more rights than its user (setuid, file capabilities): the environment is then not trusted.
bool process_is_privileged();

}  // namespace minfer::plugin
