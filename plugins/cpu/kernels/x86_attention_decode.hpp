// Attention of one row: the order of work of a decode step. f32 and f16 are converted in registers on their way into the products, since
// each value is used by the query heads of one group only; x86_attention.hpp, for many rows, converts them once in memory. So is q8_0 here:
// to convert it for each tile of heads anew would take longer.
// The bits are those of kernels/baseline/attention_baseline.cpp. Anonymous namespace: each file keeps its own copy.
//
// Simd, beside what x86_attention.hpp asks:
//   Vector, kLanes                      a register of floats
//   zero(), load(p), store(p, v)        of floats
//   load_f16(p), all(p)                 kLanes halves; *p in every lane
//   fma(a, b, c)                        a * b + c, rounded once
//   kMostHeads, vectors(n_heads)        the tiles of accumulators that fit the registers
#pragma once

#include "kernels/x86_attention_panels.hpp"
#include "kernels/x86_attention_run.hpp"

namespace minfer::cpu {
namespace {

// K or V as stored: a matrix [k][lane] in panels of 16 lanes, read a vector at a time.
template <class Simd, KvFormat kFormat>
struct StoredFloats {
  static constexpr int64_t kBytes = kFormat == KvFormat::kF32 ? 4 : 2;
  const unsigned char* first;
  int64_t row_stride;
  int64_t panel_stride;

  StoredFloats at(int64_t vector) const noexcept {
    const int64_t lane = vector * Simd::kLanes;
    return {first + lane / kPanelFloats * panel_stride + lane % kPanelFloats * kBytes, row_stride, panel_stride};
  }
  typename Simd::Vector load(int64_t k, int v) const noexcept {
    const int lane = v * Simd::kLanes;
    const unsigned char* p = first + k * row_stride + lane / kPanelFloats * panel_stride + lane % kPanelFloats * kBytes;
    if constexpr (kFormat == KvFormat::kF32) return Simd::load(reinterpret_cast<const float*>(p));
    return Simd::load_f16(p);
  }
};

// c[r][lane] = fma over k ascending of a[r][k] * source[k][lane], from 0 or from c.
struct DecodeTile {
  const float* a;
  int64_t a_stride;
  int64_t n;
  float* c;
  int64_t c_stride;
};

// What is read next comes into the cache meanwhile, a little with each step of k: blocks lie anywhere, and the hardware does not foresee
// the next one.
struct Ahead {
  const unsigned char* next;
  int64_t step;  // bytes
};

template <class Simd, int kRows, int kVectors, bool kFromZero, class Source>
inline void decode_tile(const DecodeTile& t, const Source& source, Ahead* ahead) noexcept {
  const unsigned char* next = ahead->next;
  const int64_t step = ahead->step;
  typename Simd::Vector acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) acc[r][v] = kFromZero ? Simd::zero() : Simd::load(t.c + r * t.c_stride + v * Simd::kLanes);
  for (int64_t k = 0; k < t.n; ++k, next += step) {
    __builtin_prefetch(next);
    if constexpr (kRows > kVectors) {  // the fewer of the two wait in registers
      typename Simd::Vector lanes[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) lanes[v] = source.load(k, v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const auto x = Simd::all(t.a + r * t.a_stride + k);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) acc[r][v] = Simd::fma(x, lanes[v], acc[r][v]);
      }
    } else {
      typename Simd::Vector x[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) x[r] = Simd::all(t.a + r * t.a_stride + k);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const auto lanes = source.load(k, v);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) acc[r][v] = Simd::fma(x[r], lanes, acc[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) Simd::store(t.c + r * t.c_stride + v * Simd::kLanes, acc[r][v]);
  ahead->next = next;
}

// n_rows rows (kRows <= n_rows <= kMostHeads) by n_vectors vectors, a whole number of panels.
template <class Simd, int kRows, bool kFromZero, class Source>
inline void decode_rows(int64_t n_rows, const DecodeTile& t, const Source& source, int64_t n_vectors, Ahead* ahead) noexcept {
  if constexpr (kRows < Simd::kMostHeads) {
    if (n_rows > kRows) return decode_rows<Simd, kRows + 1, kFromZero>(n_rows, t, source, n_vectors, ahead);
  }
  constexpr int kMost = Simd::vectors(kRows), kPanel = kPanelFloats / Simd::kLanes;
  const auto from = [&](int64_t vector) noexcept { return DecodeTile{t.a, t.a_stride, t.n, t.c + vector * Simd::kLanes, t.c_stride}; };
  int64_t v = 0;
  for (; v + kMost <= n_vectors; v += kMost) decode_tile<Simd, kRows, kMost, kFromZero>(from(v), source.at(v), ahead);
  if constexpr (kMost > kPanel) {
    for (; v < n_vectors; v += kPanel) decode_tile<Simd, kRows, kPanel, kFromZero>(from(v), source.at(v), ahead);
  }
}

// Any number of rows, in tiles of nearly equal height.
template <class Simd, bool kFromZero, class Source>
void decode_multiply(int64_t n_rows, DecodeTile t, const Source& source, int64_t n_vectors, Ahead* ahead) noexcept {
  for (int64_t n_tiles = (n_rows + Simd::kMostHeads - 1) / Simd::kMostHeads; n_tiles > 0; --n_tiles) {
    const int64_t n = (n_rows + n_tiles - 1) / n_tiles;
    decode_rows<Simd, 1, kFromZero>(n, t, source, n_vectors, ahead);
    t.a += n * t.a_stride;
    t.c += n * t.c_stride;
    n_rows -= n;
  }
}

// What decode_multiply reads: K and V themselves, or what q8_0 was converted to.
template <class Simd, KvFormat kFormat>
using DecodeSource = StoredFloats<Simd, kFormat == KvFormat::kQ8_0 ? KvFormat::kF32 : kFormat>;

// Scores of positions first_panel * 16 .. end_panel * 16 - 1 of a block, without the scale.
template <class Simd, KvFormat kFormat>
void decode_keys(const Run& run, const float* q, const unsigned char* block, int64_t first_panel, int64_t end_panel, Ahead ahead,
                 float* scores) noexcept {
  using Source = DecodeSource<Simd, kFormat>;
  const int64_t head_dim = run.args->layout.head_dim, panel_bytes = kKvPanel * Source::kBytes * head_dim;
  if constexpr (kFormat == KvFormat::kQ8_0) {
    k_to_panels(run.args->layout, block, first_panel, end_panel, run.k_panels);
    block = reinterpret_cast<const unsigned char*>(run.k_panels);
  }
  decode_multiply<Simd, true>(run.n_heads, {q, head_dim, head_dim, scores, kAttentionChunk},
                              Source{block + first_panel * panel_bytes, kKvPanel * Source::kBytes, panel_bytes},
                              (end_panel - first_panel) * (kPanelFloats / Simd::kLanes), &ahead);
}

// o of a chunk, from 0 or going on, over the positions `rows` of a block.
template <class Simd, KvFormat kFormat, bool kFromZero>
void decode_values(const Run& run, const float* weights, const unsigned char* block, Range rows, Ahead ahead, float* o) noexcept {
  using Source = DecodeSource<Simd, kFormat>;
  const int64_t head_dim = run.args->layout.head_dim;
  int64_t row_bytes = head_dim * Source::kBytes, panel_bytes = kPanelFloats * Source::kBytes;
  if constexpr (kFormat == KvFormat::kQ8_0) {
    v_to_panels(run.args->layout, block, rows.begin, rows.end, run.v_panels);
    block = reinterpret_cast<const unsigned char*>(run.v_panels);
    row_bytes = panel_bytes;
    panel_bytes = kKvBlock * row_bytes;
  }
  decode_multiply<Simd, kFromZero>(run.n_heads, {weights, kAttentionChunk, rows.end - rows.begin, o, run.n_chunks * head_dim},
                                   Source{block + rows.begin * row_bytes, row_bytes, panel_bytes}, head_dim / Simd::kLanes, &ahead);
}

// Steps of k that decode_multiply takes for 8 vectors of n_rows rows, if k has one.
template <class Simd>
int64_t decode_steps(int64_t n_rows) noexcept {
  int64_t steps = 0;
  for (int64_t n_tiles = (n_rows + Simd::kMostHeads - 1) / Simd::kMostHeads; n_tiles > 0; --n_tiles) {
    const int64_t n = (n_rows + n_tiles - 1) / n_tiles;
    steps += 8 / Simd::vectors(static_cast<int>(n));
    n_rows -= n;
  }
  return steps;
}

// A run of one row and at most kAttentionSlab heads.
template <class Simd, KvFormat kFormat>
void decode_row(const Run& run) noexcept {
  const AttentionArgs& args = *run.args;
  const AttentionRow& row = args.rows[run.row_begin];
  const int64_t head_dim = args.layout.head_dim;
  const float* q = args.q + run.row_begin * args.q_stride + run.unit->head_begin * head_dim;
  const auto stored = [&](const void* region, int64_t block) noexcept {
    return static_cast<const unsigned char*>(region) + kv_offset(args.layout, row.blocks[block], run.kv_head);
  };
  const int64_t block_bytes = kv_head_block_bytes(args.layout), steps = decode_steps<Simd>(run.n_heads);
  const auto ahead = [&](const unsigned char* next, int64_t lanes, int64_t n) noexcept {
    return Ahead{next, smaller(block_bytes * 8 * Simd::kLanes / (steps * lanes * n), 128)};
  };
  for (int64_t c = 0; c < run.n_chunks; ++c) {
    const int64_t start = (run.first_chunk + c) * kAttentionChunk;
    const Range range = visible(run, 0, start);
    const Range blocks{(start + range.begin) / kKvBlock, (start + range.end - 1) / kKvBlock + 1};
    const auto rows_of = [&](int64_t block) noexcept {
      return both({start + range.begin - block * kKvBlock, start + range.end - block * kKvBlock}, {0, kKvBlock});
    };
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      const Range rows = rows_of(b);
      const unsigned char* k = stored(args.k_region, b);
      const unsigned char* next = b + 1 < blocks.end ? stored(args.k_region, b + 1) : stored(args.v_region, blocks.begin);
      const int64_t first_panel = rows.begin / kKvPanel, end_panel = (rows.end + kKvPanel - 1) / kKvPanel;
      decode_keys<Simd, kFormat>(run, q, k, first_panel, end_panel, ahead(next, (end_panel - first_panel) * kKvPanel, head_dim),
                                 run.scores + b * kKvBlock - start + first_panel * kKvPanel);
    }
    for (int64_t h = 0; h < run.n_heads; ++h) {
      const int64_t part = h * run.n_chunks + c;
      Simd::softmax(run.scores + h * kAttentionChunk, range, args.scale, run.m + part, run.l + part);
    }
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      const Range rows = rows_of(b);
      const unsigned char* v = stored(args.v_region, b);
      const unsigned char* next = v;
      if (b + 1 < blocks.end)
        next = stored(args.v_region, b + 1);
      else if (c + 1 < run.n_chunks)
        next = stored(args.k_region, b + 1);
      const float* weights = run.scores + b * kKvBlock - start + rows.begin;
      float* o = run.o + c * head_dim;
      if (b == blocks.begin)
        decode_values<Simd, kFormat, true>(run, weights, v, rows, ahead(next, head_dim, rows.end - rows.begin), o);
      else
        decode_values<Simd, kFormat, false>(run, weights, v, rows, ahead(next, head_dim, rows.end - rows.begin), o);
    }
  }
  for (int64_t h = 0; h < run.n_heads; ++h) merge_chunks<Simd>(run, h);
}

}  // namespace
}  // namespace minfer::cpu
