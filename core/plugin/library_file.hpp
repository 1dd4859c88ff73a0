// Is this file a whole shared library for this machine? Read from its headers, before the system's loader sees it: the loader's
// words for a wrong file help nobody, and one that was cut off ends the process with a bus error.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "plugin/report.hpp"

namespace minfer::plugin {

struct FileRefusal {
  Stage stage;
  Error error;
  std::string hint;
};

// `path` must be a regular file. Judges ELF files on systems that load those, and nothing elsewhere.
std::optional<FileRefusal> check_library_file(const std::filesystem::path& path);

}  // namespace minfer::plugin
