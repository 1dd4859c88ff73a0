// The SDK headers together and the golden layout, as C++17. Never linked: a test compiles it, by each compiler there is.
#include "minfer/plugin/backend.hpp"
#include "minfer/plugin/blocks.hpp"
#include "minfer/plugin/decoder.hpp"
#include "minfer/plugin/dtype.hpp"
#include "minfer/plugin/host_device.hpp"
#include "minfer/plugin/hparams.hpp"

static_assert(minfer::sdk::row_bytes(MI_TYPE_Q4_K, 512) == 288, "two blocks of 144 bytes");
static_assert(minfer::sdk::row_bytes(MI_TYPE_Q4_K, 100) == 0, "no whole number of blocks");
static_assert(minfer::sdk::row_bytes(99, 256) == 0, "no such type");

#define STRUCT(s, size) static_assert(sizeof(s) == (size), "size of " #s);
#define FIELD(s, f, offset, size) static_assert(offsetof(s, f) == (offset) && sizeof(((s*)0)->f) == (size), "place of " #s "." #f);
#include "layout_64bit.inc"
