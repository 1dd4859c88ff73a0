// Where programs look for plugins: the folders beside the program, the environment and the installation. Shared by all programs.
#pragma once

#include "plugin/discovery.hpp"

namespace minfer::programs {

// files, dirs and allow_unsafe_paths are left to the caller.
plugin::SearchPaths default_search();

}  // namespace minfer::programs
