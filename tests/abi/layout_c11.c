/* The golden layout as C11 sees it. Never linked: a test compiles it, by each compiler there is. */
#include "minfer/abi/abi_hash.h"
#include "minfer/abi/plugin.h"

#define STRUCT(s, size) _Static_assert(sizeof(s) == (size), "size of " #s);
#define FIELD(s, f, offset, size) _Static_assert(offsetof(s, f) == (offset) && sizeof(((s*)0)->f) == (size), "place of " #s "." #f);
#include "layout_64bit.inc"
