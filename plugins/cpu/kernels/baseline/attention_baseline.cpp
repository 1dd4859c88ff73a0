// Attention as attention.hpp defines it, written down literally: one row and one query head after the other.
#include <cmath>
#include <cstring>

#include "kernels/float16.hpp"
#include "kernels/math.hpp"
#include "kernels/op_tables.hpp"

namespace minfer::cpu::baseline {
namespace {

float load_f16(const unsigned char* p) noexcept {
  uint16_t h;
  std::memcpy(&h, p, 2);
  return f16_to_f32(h);
}

float load_f32(const unsigned char* p) noexcept {
  float x;
  std::memcpy(&x, p, 4);
  return x;
}

// Element d of row `row` (0..63) of a K block, the layout of kv_layout.hpp.
float k_element(const KvLayout& layout, const unsigned char* block, int64_t row, int64_t d) noexcept {
  const unsigned char* panel = block + row / kKvPanel * kKvPanel * kv_head_row_bytes(layout);
  const int64_t lane = row % kKvPanel;
  if (layout.format == KvFormat::kF32) return load_f32(panel + 4 * (d * kKvPanel + lane));
  if (layout.format == KvFormat::kF16) return load_f16(panel + 2 * (d * kKvPanel + lane));
  const unsigned char* group = panel + d / kQ8Group * (kKvPanel * kQ8Bytes);
  const auto q = static_cast<int8_t>(group[2 * kKvPanel + d % kQ8Group * kKvPanel + lane]);
  return load_f16(group + 2 * lane) * static_cast<float>(q);
}

float v_element(const KvLayout& layout, const unsigned char* block, int64_t row, int64_t d) noexcept {
  const unsigned char* v = block + row * kv_head_row_bytes(layout);
  if (layout.format == KvFormat::kF32) return load_f32(v + 4 * d);
  if (layout.format == KvFormat::kF16) return load_f16(v + 2 * d);
  const unsigned char* group = v + d / kQ8Group * kQ8Bytes;
  return load_f16(group) * static_cast<float>(static_cast<int8_t>(group[2 + d % kQ8Group]));
}

// m, l and o of one chunk: positions begin..end-1, all visible.
struct Chunk {
  float m;
  float l;
  float* o;  // [head_dim]
};

void attend_chunk(const AttentionArgs& args, const AttentionRow& row, int64_t kv_head, const float* q, int64_t begin, int64_t end,
                  Chunk* chunk) noexcept {
  const KvLayout& layout = args.layout;
  const auto* k = static_cast<const unsigned char*>(args.k_region);
  const auto* v = static_cast<const unsigned char*>(args.v_region);
  float score[kAttentionChunk];
  chunk->m = -INFINITY;
  for (int64_t p = begin; p < end; ++p) {
    const unsigned char* block = k + kv_offset(layout, row.blocks[p / kKvBlock], kv_head);
    float dot = 0.0f;
    for (int64_t d = 0; d < layout.head_dim; ++d) dot = std::fma(q[d], k_element(layout, block, p % kKvBlock, d), dot);
    const float s = dot * args.scale;
    score[p - begin] = s;
    chunk->m = s > chunk->m ? s : chunk->m;
  }
  float lanes[16] = {};
  for (int64_t d = 0; d < layout.head_dim; ++d) chunk->o[d] = 0.0f;
  for (int64_t p = begin; p < end; ++p) {
    const float e = exp_f32(score[p - begin] - chunk->m);
    lanes[p % 16] = lanes[p % 16] + e;
    const unsigned char* block = v + kv_offset(layout, row.blocks[p / kKvBlock], kv_head);
    for (int64_t d = 0; d < layout.head_dim; ++d) chunk->o[d] = std::fma(e, v_element(layout, block, p % kKvBlock, d), chunk->o[d]);
  }
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  }
  chunk->l = lanes[0];
}

void attend_row(const AttentionArgs& args, const AttentionRow& row, int64_t kv_head, const float* q, float* out, float* scratch) noexcept {
  const int64_t head_dim = args.layout.head_dim;
  const int64_t first_chunk = row.first / kAttentionChunk;
  const int64_t n_chunks = row.position / kAttentionChunk - first_chunk + 1;
  float* m = scratch;
  float* l = m + n_chunks;
  float* o = l + n_chunks;  // [n_chunks][head_dim]
  float largest = -INFINITY;
  for (int64_t c = 0; c < n_chunks; ++c) {
    const int64_t start = (first_chunk + c) * kAttentionChunk;
    const int64_t begin = row.first > start ? row.first : start;
    const int64_t end = row.position + 1 < start + kAttentionChunk ? row.position + 1 : start + kAttentionChunk;
    Chunk chunk{0.0f, 0.0f, o + c * head_dim};
    attend_chunk(args, row, kv_head, q, begin, end, &chunk);
    m[c] = chunk.m;
    l[c] = chunk.l;
    largest = chunk.m > largest ? chunk.m : largest;
  }
  float sum = 0.0f;
  for (int64_t d = 0; d < head_dim; ++d) out[d] = 0.0f;
  for (int64_t c = 0; c < n_chunks; ++c) {
    const float w = exp_f32(m[c] - largest);
    sum = std::fma(l[c], w, sum);
    for (int64_t d = 0; d < head_dim; ++d) out[d] = std::fma(o[c * head_dim + d], w, out[d]);
  }
  for (int64_t d = 0; d < head_dim; ++d) out[d] = out[d] / sum;
}

}  // namespace

void attend(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept {
  const int64_t group = args.n_heads / args.layout.n_kv_heads;
  for (int64_t r = unit.row_begin; r < unit.row_end; ++r) {
    const AttentionRow& row = args.rows[r];
    if (row.blocks == nullptr) continue;
    for (int64_t h = unit.head_begin; h < unit.head_end; ++h) {
      attend_row(args, row, h / group, args.q + r * args.q_stride + h * args.layout.head_dim,
                 args.out + r * args.out_stride + h * args.layout.head_dim, static_cast<float*>(scratch));
    }
  }
}

}  // namespace minfer::cpu::baseline
