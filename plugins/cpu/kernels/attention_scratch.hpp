// Sizes that the attention kernels and attention_scratch_bytes agree on.
#pragma once

#include "kernels/attention.hpp"

namespace minfer::cpu {

constexpr int32_t kAttentionSlab = 48;  // (row, query head) pairs whose scores are held at once

}  // namespace minfer::cpu
