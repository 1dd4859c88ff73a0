// Attention for AVX2 and AVX-512: a run of rows of one sequence, the memory it works in, and the joining of its chunks: what the order of
// work for many rows (x86_attention.hpp) and for one (x86_attention_decode.hpp) share. Anonymous namespace: each file keeps its own copy.
#pragma once

#include "kernels/attention_scratch.hpp"

namespace minfer::cpu {
namespace {

constexpr int64_t kBlocksPerChunk = kAttentionChunk / kKvBlock;
constexpr int64_t kPanelsPerBlock = kKvBlock / kKvPanel;

inline int64_t smaller(int64_t a, int64_t b) noexcept { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) noexcept { return a > b ? a : b; }

// Positions begin..end-1; empty where begin >= end.
struct Range {
  int64_t begin;
  int64_t end;
  bool empty() const noexcept { return begin >= end; }
};
inline Range both(Range a, Range b) noexcept { return {larger(a.begin, b.begin), smaller(a.end, b.end)}; }

// Rows row_begin..row_end-1 of one sequence, and the memory they work in.
struct Run {
  const AttentionArgs* args;
  const AttentionUnit* unit;
  int64_t kv_head;
  int64_t row_begin;
  int64_t n_heads;    // of the unit
  int64_t n_vectors;  // rows * n_heads, vector = row * n_heads + head
  int64_t first_chunk;
  int64_t n_chunks;
  float* k_panels;  // [4 blocks][4 panels][head_dim][16]
  float* v_panels;  // [4 blocks][head_dim / 16][64][16]
  float* q;         // [slab vectors][head_dim]
  float* scores;    // [slab vectors][256]
  float* m;         // [n_vectors][n_chunks]
  float* l;         // [n_vectors][n_chunks]
  float* o;         // [n_vectors][n_chunks][head_dim]
};

inline const AttentionRow& row_of(const Run& run, int64_t vector) noexcept { return run.args->rows[run.row_begin + vector / run.n_heads]; }
inline int64_t head_of(const Run& run, int64_t vector) noexcept { return run.unit->head_begin + vector % run.n_heads; }

// What a vector sees of the positions start..start+255, relative to start.
inline Range visible(const Run& run, int64_t vector, int64_t start) noexcept {
  const AttentionRow& row = row_of(run, vector);
  return both({row.first - start, row.position + 1 - start}, {0, kAttentionChunk});
}

// Joins the chunks of one vector and writes its output.
template <class Simd>
void merge_chunks(const Run& run, int64_t vector) noexcept {
  const AttentionArgs& args = *run.args;
  const int64_t head_dim = args.layout.head_dim;
  const AttentionRow& row = row_of(run, vector);
  const int64_t begin = row.first / kAttentionChunk - run.first_chunk;
  const int64_t end = row.position / kAttentionChunk - run.first_chunk + 1;
  float* m = run.m + vector * run.n_chunks;
  const float* l = run.l + vector * run.n_chunks;
  const float* o = run.o + vector * run.n_chunks * head_dim;
  float largest = m[begin];
  for (int64_t c = begin + 1; c < end; ++c) largest = m[c] > largest ? m[c] : largest;
  float sum = 0.0f;
  for (int64_t c = begin; c < end; ++c) {
    m[c] = Simd::exp(m[c] - largest);  // now the chunk's weight
    sum = __builtin_fmaf(l[c], m[c], sum);
  }
  float* out = args.out + (run.row_begin + vector / run.n_heads) * args.out_stride + head_of(run, vector) * head_dim;
  Simd::join(o + begin * head_dim, m + begin, end - begin, sum, head_dim, out);
}

}  // namespace
}  // namespace minfer::cpu
