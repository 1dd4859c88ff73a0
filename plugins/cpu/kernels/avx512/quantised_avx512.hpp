// Products of quantised weights: straight from the packed form for a few tokens, through an unpacked panel for many.
// Included by the files of avx512/ only.
#pragma once

#include "kernels/avx512/block_avx512.hpp"

namespace minfer::cpu {
namespace {

constexpr size_t kFewTokens = 8;

// The weights stream through once. n_tokens is a template argument for one token; 0: args.n_tokens, up to kFewTokens.
template <WeightType type, bool vnni, size_t tokens>
void gemv(const MatmulArgs& args) {
  const size_t n_tokens = tokens ? tokens : args.n_tokens;
  const size_t n_blocks = args.cols / kBlockCols;
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  for (size_t g = args.group_begin; g < args.group_end; ++g) {
    const uint8_t* group = static_cast<const uint8_t*>(args.weights) + g * group_bytes;
    Chains chains[tokens ? tokens : kFewTokens];
    for (size_t c = 0; c < n_tokens; ++c) chains[c].acc = chains[c].scaled = chains[c].mins = _mm512_setzero_ps();
    for (size_t slab = 0; slab < n_blocks; slab += kSlabBlocks) {
      const size_t width = n_blocks - slab < kSlabBlocks ? n_blocks - slab : kSlabBlocks;
      const Q8Block* a = args.q8 + slab * n_tokens;
      for (size_t b = 0; b < width; ++b, ++a) {
        Block w;
        load_block<type, vnni>(group, slab + b, &w);
        size_t c = 0;
        if constexpr (tokens == 0)
          for (; c + 4 <= n_tokens; c += 4) accumulate<type, vnni, 4>(w, a + c * width, width, chains + c);
        for (; c < n_tokens; ++c) accumulate<type, vnni, 1>(w, a + c * width, width, chains + c);
        end_block<type>(w, b, n_tokens, chains);
      }
    }
    for (size_t c = 0; c < n_tokens; ++c) finish_rows(args, g * 16, c, chains[c].acc);
  }
}

constexpr size_t kTokenBlock = 144;  // their activations of one slab and the sums of kGroupBlock groups stay in the second-level cache
constexpr size_t kGroupBlock = 8;

// Tokens of a micro-kernel: their sums, chains and a weight fill the 32 registers; the chains of K types are partly in memory.
constexpr int token_step(WeightType type, bool vnni) { return byte_dots(type, vnni) && !quant_format(type).is_k() ? 12 : 8; }

struct alignas(64) GemmScratch {
  Block panel[kSlabBlocks];
  float acc[kGroupBlock][kTokenBlock][16];
};
static_assert(sizeof(GemmScratch) <= kMatmulScratchBytes);
static_assert(kTokenBlock % 12 == 0 && kTokenBlock % 8 == 0);

// 16 rows x n tokens, the sums acc[token][16] go on by n_blocks blocks. The activations of token c start at a + c * n_blocks.
template <WeightType type, bool vnni, int n>
inline void micro_kernel(const Block* panel, size_t n_blocks, const Q8Block* a, float (*acc)[16]) {
  Chains chains[n];
#pragma GCC unroll 16
  for (int c = 0; c < n; ++c) {
    chains[c].acc = _mm512_loadu_ps(acc[c]);
    chains[c].scaled = chains[c].mins = _mm512_setzero_ps();
  }
  for (size_t b = 0; b < n_blocks; ++b) {
    for (size_t c = 0; c < n; ++c)  // the next tokens, still in the second-level cache
      _mm_prefetch(reinterpret_cast<const char*>(a + b + (c + n) * n_blocks), _MM_HINT_T0);
    accumulate<type, vnni, n>(panel[b], a + b, n_blocks, chains);
    end_block<type>(panel[b], b, n, chains);
  }
#pragma GCC unroll 16
  for (int c = 0; c < n; ++c) _mm512_storeu_ps(acc[c], chains[c].acc);
}

// A slab of a group's weights is unpacked once into a panel that stays in the first-level cache, then all tokens pass over it.
template <WeightType type, bool vnni>
void gemm(const MatmulArgs& args) {
  constexpr size_t kStep = token_step(type, vnni);
  const size_t n_blocks = args.cols / kBlockCols;
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  // With few tokens the weights are the larger stream: a group is then read from one end to the other.
  const size_t groups_at_once = args.n_tokens <= 32 ? 1 : kGroupBlock;
  GemmScratch& scratch = *static_cast<GemmScratch*>(args.scratch);
  const size_t n_parts = (args.n_tokens + kTokenBlock - 1) / kTokenBlock;
  const size_t part_tokens = (args.n_tokens + n_parts * kStep - 1) / (n_parts * kStep) * kStep;  // even shares, whole steps
  for (size_t token = 0; token < args.n_tokens; token += part_tokens) {
    const size_t n_tokens = args.n_tokens - token < part_tokens ? args.n_tokens - token : part_tokens;
    for (size_t first = args.group_begin; first < args.group_end; first += groups_at_once) {
      const size_t n_groups = args.group_end - first < groups_at_once ? args.group_end - first : groups_at_once;
      for (size_t i = 0; i < n_groups; ++i) std::memset(scratch.acc[i], 0, n_tokens * sizeof scratch.acc[0][0]);
      for (size_t slab = 0; slab < n_blocks; slab += kSlabBlocks) {
        const size_t width = n_blocks - slab < kSlabBlocks ? n_blocks - slab : kSlabBlocks;
        const Q8Block* a = args.q8 + slab * args.n_tokens + token * width;
        for (size_t i = 0; i < n_groups; ++i) {
          const uint8_t* group = static_cast<const uint8_t*>(args.weights) + (first + i) * group_bytes;
          for (size_t b = 0; b < width; ++b) load_block<type, vnni>(group, slab + b, &scratch.panel[b]);
          size_t c = 0;
          for (; c + kStep <= n_tokens; c += kStep)
            micro_kernel<type, vnni, kStep>(scratch.panel, width, a + c * width, &scratch.acc[i][c]);
          for (; c + 4 <= n_tokens; c += 4) micro_kernel<type, vnni, 4>(scratch.panel, width, a + c * width, &scratch.acc[i][c]);
          for (; c < n_tokens; ++c) micro_kernel<type, vnni, 1>(scratch.panel, width, a + c * width, &scratch.acc[i][c]);
        }
      }
      for (size_t c = 0; c < n_tokens; ++c)
        for (size_t i = 0; i < n_groups; ++i) finish_rows(args, (first + i) * 16, token + c, _mm512_loadu_ps(scratch.acc[i][c]));
    }
  }
}

}  // namespace
}  // namespace minfer::cpu
