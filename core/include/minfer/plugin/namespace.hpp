// minfer plugin SDK: the namespace of everything in it. Hidden, and named after the ABI version, so that plugins built from different
// versions never share code in one process.
#ifndef MINFER_PLUGIN_NAMESPACE_HPP_
#define MINFER_PLUGIN_NAMESPACE_HPP_

#include "minfer/abi/base.h"

#define MINFER_SDK_BEGIN \
  namespace minfer {     \
  namespace sdk {        \
  inline namespace abi_v1_m0 __attribute__((visibility("hidden"))) {
#define MINFER_SDK_END \
  }                    \
  }                    \
  }
static_assert(MI_ABI_MAJOR == 1 && MI_ABI_MINOR == 0, "the inline namespace above names the ABI version");

#endif
