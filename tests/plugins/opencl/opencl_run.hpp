// Models on an OpenCL device, which may be the processor itself.
#pragma once

#include <cstdlib>

#include "plugins/remote/offload_run.hpp"

namespace minfer::test {

// Compiled kernels are kept inside the build tree.
inline void set_kernel_cache() {
  const std::filesystem::path cache = build_dir() / "pocl-cache";
  std::filesystem::create_directories(cache);
  setenv("POCL_CACHE_DIR", cache.c_str(), 0);
}

// The backend with `layers` layers (-1: all that are left) on PoCL, or on the platform that MINFER_TEST_OPENCL_PLATFORM names. Skips the
// test where this machine has none: results are compared bit for bit, which no other implementation promises.
inline BackendSpec opencl(int layers = -1, plugin::Options options = {}) {
  set_kernel_cache();
  const char* platform = std::getenv("MINFER_TEST_OPENCL_PLATFORM");
  options.emplace("allow_cpu", "true");
  options.emplace("platform", platform ? platform : "Portable Computing Language");
  BackendSpec spec = backend("opencl", layers, options);
  static const bool found = [&] {
    const auto registry = build_tree_plugins();
    const auto opened = registry->open_backend(spec.request);
    if (!opened.ok() && opened.error().code == ErrorCode::kNotFound) skip(opened.error().text);
    return true;
  }();
  static_cast<void>(found);
  return spec;
}

}  // namespace minfer::test
