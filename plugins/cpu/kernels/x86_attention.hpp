// Attention for AVX2 and AVX-512: the order of work that both share. The bits are those of kernels/baseline/attention_baseline.cpp
// (contract in attention.hpp). Anonymous namespace: each file keeps its own copy, compiled for its own instruction set.
//
// A unit is cut into runs of rows of one sequence. A run of one row is x86_attention_decode.hpp's. Another run's (row, query
// head) pairs are "vectors"; chunk by chunk, slabs of up to 48 vectors go through scores, softmax and P * V, and all of them share the
// chunk's K and V, converted to float once. Only scheduling differs from the definition: every element sees the same operations in the same
// order.
//
// Simd, the arithmetic of a vector width:
//   fma_panels<from_zero>(n_rows, tile, n_panels)       n_rows <= kTileRows
//   softmax(scores, visible, scale, &m, &l)             dots to exp(s - m), in place; 0 for what is not visible in the panels touched
//   exp(x)                                              exp_f32
//   join(o, weights, n_chunks, sum, head_dim, out)      out = (fma over chunks ascending of o[chunk] * weight, from +0) / sum
#pragma once

#include "kernels/x86_attention_decode.hpp"
#include "kernels/x86_attention_panels.hpp"
#include "kernels/x86_attention_run.hpp"

namespace minfer::cpu {
namespace {

// c[r][lane] = fma over k ascending of a[r][k] * b[k][lane], starting from 0 or from c.
// a: rows of stride a_stride. b: panels [n][16], panel_stride floats apart. c: rows of stride c_stride, panel p at c + 16 p.
struct TileArgs {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t panel_stride;
  int64_t n;
  float* c;
  int64_t c_stride;
};

constexpr int kTileRows = 6;

// One chunk of a run.
struct ChunkWork {
  int64_t index;                // in the run's chunks
  int64_t start;                // its first position
  Range seen[kBlocksPerChunk];  // the positions, relative to start, that the run's rows see of each block (their hull)
  const int32_t* blocks;        // of this chunk's positions
  int64_t k_ready;              // blocks below this one are converted
  int64_t v_ready;
  int64_t panels_step;  // floats between the panels of two blocks; 0 when each is used once and they may share memory
};

// Vectors first..first+n-1 of a slab, multiplied together.
struct Tile {
  int64_t vector;
  int64_t slab_row;
  int n;
  Range hull;    // what any of them sees in the chunk
  Range common;  // what all of them see
};

Tile make_tile(const Run& run, const ChunkWork& chunk, int64_t slab_begin, int64_t vector, int n) noexcept {
  Tile tile{vector, vector - slab_begin, n, {kAttentionChunk, 0}, {0, kAttentionChunk}};
  for (int i = 0; i < n; ++i) {
    const Range range = visible(run, vector + i, chunk.start);
    if (!range.empty()) {
      tile.hull.begin = smaller(tile.hull.begin, range.begin);
      tile.hull.end = larger(tile.hull.end, range.end);
    }
    tile.common = both(tile.common, range);
  }
  return tile;
}

// Calls body(tile) for the vectors begin..end-1 in tiles of nearly equal size, at most 6.
template <class Body>
inline void for_each_tile(const Run& run, const ChunkWork& chunk, int64_t begin, int64_t end, Body body) noexcept {
  const int64_t n_tiles = (end - begin + kTileRows - 1) / kTileRows;
  int64_t vector = begin;
  for (int64_t i = 0; i < n_tiles; ++i) {
    const int64_t next = vector + (end - vector) / (n_tiles - i) + ((end - vector) % (n_tiles - i) != 0 ? 1 : 0);
    const Tile tile = make_tile(run, chunk, begin, vector, static_cast<int>(next - vector));
    if (!tile.hull.empty()) body(tile);
    vector = next;
  }
}

template <class Simd>
void slab_scores(const Run& run, ChunkWork* chunk, int64_t begin, int64_t end) noexcept {
  const KvLayout& layout = run.args->layout;
  const int64_t head_dim = layout.head_dim;
  const int64_t panel_size = kPanelFloats * head_dim;
  for (int64_t b = 0; b < kBlocksPerChunk; ++b) {
    const Range rows = chunk->seen[b];
    if (rows.empty()) continue;
    float* panels = run.k_panels + b * chunk->panels_step;
    if (b >= chunk->k_ready) {
      const auto* region = static_cast<const unsigned char*>(run.args->k_region);
      const int32_t block = chunk->blocks[b];
      k_to_panels(layout, region + kv_offset(layout, block, run.kv_head), rows.begin / kKvPanel - b * kPanelsPerBlock,
                  (rows.end + kKvPanel - 1) / kKvPanel - b * kPanelsPerBlock, panels);
      chunk->k_ready = b + 1;
    }
    for_each_tile(run, *chunk, begin, end, [&](const Tile& tile) {
      const Range want =
          both({tile.hull.begin / kKvPanel, (tile.hull.end + kKvPanel - 1) / kKvPanel}, {b * kPanelsPerBlock, (b + 1) * kPanelsPerBlock});
      if (want.empty()) return;
      const TileArgs t{run.q + tile.slab_row * head_dim,
                       head_dim,
                       panels + (want.begin - b * kPanelsPerBlock) * panel_size,
                       panel_size,
                       head_dim,
                       run.scores + tile.slab_row * kAttentionChunk + want.begin * kKvPanel,
                       kAttentionChunk};
      Simd::template fma_panels<true>(tile.n, t, want.end - want.begin);
    });
  }
}

// o += e * V over the positions `range` (of the chunk) of block b, for n vectors from `vector` on.
template <class Simd>
void multiply_v(const Run& run, const ChunkWork& chunk, int64_t b, const float* panels, int64_t vector, int64_t slab_row, int n,
                Range range) noexcept {
  const int64_t head_dim = run.args->layout.head_dim;
  range = both(range, {b * kKvBlock, (b + 1) * kKvBlock});
  if (range.empty()) return;
  const TileArgs t{run.scores + slab_row * kAttentionChunk + range.begin,
                   kAttentionChunk,
                   panels + (range.begin - b * kKvBlock) * kPanelFloats,
                   kKvBlock * kPanelFloats,
                   range.end - range.begin,
                   run.o + (vector * run.n_chunks + chunk.index) * head_dim,
                   run.n_chunks * head_dim};
  Simd::template fma_panels<false>(n, t, head_dim / kPanelFloats);
}

template <class Simd>
void slab_values(const Run& run, ChunkWork* chunk, int64_t begin, int64_t end) noexcept {
  const KvLayout& layout = run.args->layout;
  for (int64_t b = 0; b < kBlocksPerChunk; ++b) {
    const Range rows = chunk->seen[b];
    if (rows.empty()) continue;
    float* panels = run.v_panels + b * chunk->panels_step;
    if (b >= chunk->v_ready) {
      const auto* region = static_cast<const unsigned char*>(run.args->v_region);
      const int32_t block = chunk->blocks[b];
      v_to_panels(layout, region + kv_offset(layout, block, run.kv_head), rows.begin - b * kKvBlock, rows.end - b * kKvBlock, panels);
      chunk->v_ready = b + 1;
    }
    for_each_tile(run, *chunk, begin, end, [&](const Tile& tile) {
      if (tile.common.empty()) {
        for (int i = 0; i < tile.n; ++i) {
          multiply_v<Simd>(run, *chunk, b, panels, tile.vector + i, tile.slab_row + i, 1, visible(run, tile.vector + i, chunk->start));
        }
        return;
      }
      // Positions that only some vectors see come one vector at a time, before and after those that all see.
      for (int i = 0; i < tile.n; ++i) {
        const Range range = visible(run, tile.vector + i, chunk->start);
        multiply_v<Simd>(run, *chunk, b, panels, tile.vector + i, tile.slab_row + i, 1, {range.begin, tile.common.begin});
      }
      multiply_v<Simd>(run, *chunk, b, panels, tile.vector, tile.slab_row, tile.n, tile.common);
      for (int i = 0; i < tile.n; ++i) {
        const Range range = visible(run, tile.vector + i, chunk->start);
        multiply_v<Simd>(run, *chunk, b, panels, tile.vector + i, tile.slab_row + i, 1, {tile.common.end, range.end});
      }
    });
  }
}

template <class Simd>
void attend_slab(const Run& run, ChunkWork* chunk, int64_t begin, int64_t end) noexcept {
  const AttentionArgs& args = *run.args;
  const int64_t head_dim = args.layout.head_dim;
  const size_t row_bytes = static_cast<size_t>(head_dim) * sizeof(float);
  for (int64_t v = begin; v < end; ++v) {
    const int64_t row = run.row_begin + v / run.n_heads;
    __builtin_memcpy(run.q + (v - begin) * head_dim, args.q + row * args.q_stride + head_of(run, v) * head_dim, row_bytes);
    __builtin_memset(run.o + (v * run.n_chunks + chunk->index) * head_dim, 0, row_bytes);
  }
  slab_scores<Simd>(run, chunk, begin, end);
  for (int64_t v = begin; v < end; ++v) {
    const Range range = visible(run, v, chunk->start);
    const int64_t part = v * run.n_chunks + chunk->index;
    if (!range.empty()) Simd::softmax(run.scores + (v - begin) * kAttentionChunk, range, args.scale, run.m + part, run.l + part);
  }
  slab_values<Simd>(run, chunk, begin, end);
}

template <class Simd>
void attend_run(const AttentionArgs& args, const AttentionUnit& unit, int64_t row_begin, int64_t row_end, float* scratch) noexcept {
  Run run{};
  run.args = &args;
  run.unit = &unit;
  run.kv_head = unit.head_begin / (args.n_heads / args.layout.n_kv_heads);
  run.row_begin = row_begin;
  run.n_heads = unit.head_end - unit.head_begin;
  run.n_vectors = (row_end - row_begin) * run.n_heads;
  int64_t first = args.rows[row_begin].first;
  int64_t last = args.rows[row_begin].position;
  for (int64_t r = row_begin + 1; r < row_end; ++r) {
    first = smaller(first, args.rows[r].first);
    last = larger(last, args.rows[r].position);
  }
  run.first_chunk = first / kAttentionChunk;
  run.n_chunks = last / kAttentionChunk - run.first_chunk + 1;
  const int64_t head_dim = args.layout.head_dim;
  run.k_panels = scratch;
  run.v_panels = run.k_panels + kAttentionChunk * head_dim;
  run.q = run.v_panels + kAttentionChunk * head_dim;
  run.scores = run.q + kAttentionSlab * head_dim;
  run.o = run.scores + kAttentionSlab * kAttentionChunk;
  run.m = run.o + run.n_vectors * run.n_chunks * head_dim;
  run.l = run.m + run.n_vectors * run.n_chunks;

  if (row_end - row_begin == 1 && run.n_heads <= kAttentionSlab) {
    switch (args.layout.format) {
      case KvFormat::kF32: return decode_row<Simd, KvFormat::kF32>(run);
      case KvFormat::kF16: return decode_row<Simd, KvFormat::kF16>(run);
      case KvFormat::kQ8_0: return decode_row<Simd, KvFormat::kQ8_0>(run);
    }
  }

  const bool one_slab = run.n_vectors <= kAttentionSlab;
  for (int64_t c = 0; c < run.n_chunks; ++c) {
    ChunkWork chunk{};
    chunk.index = c;
    chunk.start = (run.first_chunk + c) * kAttentionChunk;
    chunk.blocks = args.rows[row_begin].blocks + chunk.start / kKvBlock;
    chunk.panels_step = one_slab ? 0 : kKvBlock * head_dim;
    for (int64_t b = 0; b < kBlocksPerChunk; ++b) {
      chunk.seen[b] = {kAttentionChunk, 0};
      for (int64_t v = 0; v < run.n_vectors; v += run.n_heads) {
        const Range range = both(visible(run, v, chunk.start), {b * kKvBlock, (b + 1) * kKvBlock});
        if (!range.empty()) chunk.seen[b] = {smaller(chunk.seen[b].begin, range.begin), larger(chunk.seen[b].end, range.end)};
      }
    }
    for (int64_t v = 0; v < run.n_vectors; v += kAttentionSlab)
      attend_slab<Simd>(run, &chunk, v, smaller(v + kAttentionSlab, run.n_vectors));
  }
  for (int64_t v = 0; v < run.n_vectors; ++v) merge_chunks<Simd>(run, v);
}

template <class Simd>
void attend_unit(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept {
  for (int64_t begin = unit.row_begin; begin < unit.row_end;) {
    int64_t end = begin + 1;
    while (end < unit.row_end && args.rows[end].blocks == args.rows[begin].blocks) ++end;
    if (args.rows[begin].blocks != nullptr) attend_run<Simd>(args, unit, begin, end, static_cast<float*>(scratch));
    begin = end;
  }
}

}  // namespace
}  // namespace minfer::cpu
