// The SDK headers together, as C++17 with warnings as errors.
#include "minfer/plugin/backend.hpp"
#include "minfer/plugin/blocks.hpp"
#include "minfer/plugin/dtype.hpp"
#include "minfer/plugin/hparams.hpp"

static_assert(minfer::sdk::row_bytes(MI_TYPE_Q4_K, 512) == 288, "two blocks of 144 bytes");
static_assert(minfer::sdk::row_bytes(MI_TYPE_Q4_K, 100) == 0, "no whole number of blocks");
static_assert(minfer::sdk::row_bytes(99, 256) == 0, "no such type");
