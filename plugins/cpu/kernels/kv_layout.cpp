// The layout described in kv_layout.hpp, in plain C++. Rows are stored and moved here; attention reads regions itself.
#include "kernels/kv_layout.hpp"

#include <cmath>
#include <cstring>

#include "kernels/float16.hpp"

namespace minfer::cpu {
namespace {

// Largest magnitude whose q8_0 scale (amax / 127) still is a finite half.
constexpr float kQ8Max = 127.0f * kF16Max;

KvStore judge(KvFormat format, const float* x, int64_t n) noexcept {
  float largest = 0.0f;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(x[i]);
    finite = finite && magnitude <= 3.402823466e38f;  // false for NaN
    largest = magnitude > largest ? magnitude : largest;
  }
  if (!finite) return KvStore::kNonFinite;
  if (format == KvFormat::kF16 && largest > kF16Max) return KvStore::kBeyondFormat;
  if (format == KvFormat::kQ8_0 && largest > kQ8Max) return KvStore::kBeyondFormat;
  return KvStore::kOk;
}

// d = f16(amax / 127); q = x / f32(d) rounded to even, within +-127. A scale that rounds to zero stores zeros.
void quantize_q8(const float* x, unsigned char* group) noexcept {
  float amax = 0.0f;
  for (int i = 0; i < kQ8Group; ++i) {
    const float magnitude = std::fabs(x[i]);
    amax = magnitude > amax ? magnitude : amax;
  }
  const uint16_t d = f32_to_f16(amax / 127.0f);
  std::memcpy(group, &d, 2);
  const float scale = f16_to_f32(d);
  for (int i = 0; i < kQ8Group; ++i) {
    float q = 0.0f;
    if (scale != 0.0f) {
      q = std::nearbyint(x[i] / scale);
      q = q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q;
    }
    group[2 + i] = static_cast<unsigned char>(static_cast<int8_t>(q));
  }
}

// One head of a row, from float to the canonical form.
void encode_head(const KvLayout& layout, const float* x, unsigned char* row) noexcept {
  switch (layout.format) {
    case KvFormat::kF32: std::memcpy(row, x, sizeof(float) * static_cast<size_t>(layout.head_dim)); return;
    case KvFormat::kF16:
      for (int32_t d = 0; d < layout.head_dim; ++d) {
        const uint16_t h = f32_to_f16(x[d]);
        std::memcpy(row + 2 * d, &h, 2);
      }
      return;
    case KvFormat::kQ8_0:
      for (int32_t g = 0; g < layout.head_dim / kQ8Group; ++g) quantize_q8(x + g * kQ8Group, row + g * kQ8Bytes);
      return;
  }
}

// Visits the pieces of one head's row in a K panel: calls move(offset in the canonical row, offset in the region, bytes).
template <class Move>
void for_each_k_piece(const KvLayout& layout, int64_t cell, int64_t kv_head, Move move) noexcept {
  const int64_t row = cell % kKvBlock;
  const int64_t lane = row % kKvPanel;
  const int64_t panel = kv_offset(layout, cell / kKvBlock, kv_head) + row / kKvPanel * (kKvPanel * kv_head_row_bytes(layout));
  if (layout.format == KvFormat::kQ8_0) {
    for (int64_t g = 0; g < layout.head_dim / kQ8Group; ++g) {
      const int64_t group = panel + g * (kKvPanel * kQ8Bytes);
      move(g * kQ8Bytes, group + 2 * lane, 2);
      for (int64_t i = 0; i < kQ8Group; ++i) move(g * kQ8Bytes + 2 + i, group + 2 * kKvPanel + i * kKvPanel + lane, 1);
    }
  } else if (layout.format == KvFormat::kF16) {
    for (int64_t d = 0; d < layout.head_dim; ++d) move(2 * d, panel + 2 * (d * kKvPanel + lane), 2);
  } else {
    for (int64_t d = 0; d < layout.head_dim; ++d) move(4 * d, panel + 4 * (d * kKvPanel + lane), 4);
  }
}

int64_t v_offset(const KvLayout& layout, int64_t cell, int64_t kv_head) noexcept {
  return kv_offset(layout, cell / kKvBlock, kv_head) + cell % kKvBlock * kv_head_row_bytes(layout);
}

void write_k_head(const KvLayout& layout, unsigned char* region, int64_t cell, int64_t kv_head, const unsigned char* row) noexcept {
  for_each_k_piece(layout, cell, kv_head,
                   [=](int64_t in_row, int64_t in_region, size_t bytes) { std::memcpy(region + in_region, row + in_row, bytes); });
}

}  // namespace

bool kv_layout_supported(const KvLayout& layout) noexcept {
  const int32_t unit = layout.format == KvFormat::kQ8_0 ? kQ8Group : kKvPanel;
  return layout.format <= KvFormat::kQ8_0 && layout.head_dim > 0 && layout.head_dim <= 1024 && layout.head_dim % unit == 0 &&
         layout.n_kv_heads > 0 && layout.n_kv_heads <= 65536;
}

uint64_t kv_region_bytes(const KvLayout& layout, uint64_t n_blocks) noexcept {
  return n_blocks * static_cast<uint64_t>(layout.n_kv_heads) * static_cast<uint64_t>(kv_head_block_bytes(layout));
}

KvStore kv_store_row(const KvLayout& layout, void* k_region, void* v_region, int64_t cell, const float* k, const float* v) noexcept {
  const int64_t n = int64_t{layout.n_kv_heads} * layout.head_dim;
  if (const KvStore k_state = judge(layout.format, k, n); k_state != KvStore::kOk) return k_state;
  if (const KvStore v_state = judge(layout.format, v, n); v_state != KvStore::kOk) return v_state;
  unsigned char row[4 * 1024];  // one head at the largest head_dim
  for (int64_t h = 0; h < layout.n_kv_heads; ++h) {
    encode_head(layout, k + h * layout.head_dim, row);
    write_k_head(layout, static_cast<unsigned char*>(k_region), cell, h, row);
    encode_head(layout, v + h * layout.head_dim, static_cast<unsigned char*>(v_region) + v_offset(layout, cell, h));
  }
  return KvStore::kOk;
}

void kv_read_row(const KvLayout& layout, const void* k_region, const void* v_region, int64_t cell, void* k_row, void* v_row) noexcept {
  const auto* k = static_cast<const unsigned char*>(k_region);
  const auto* v = static_cast<const unsigned char*>(v_region);
  const int64_t head_bytes = kv_head_row_bytes(layout);
  for (int64_t h = 0; h < layout.n_kv_heads; ++h) {
    unsigned char* k_out = static_cast<unsigned char*>(k_row) + h * head_bytes;
    for_each_k_piece(layout, cell, h,
                     [=](int64_t in_row, int64_t in_region, size_t bytes) { std::memcpy(k_out + in_row, k + in_region, bytes); });
    std::memcpy(static_cast<unsigned char*>(v_row) + h * head_bytes, v + v_offset(layout, cell, h), static_cast<size_t>(head_bytes));
  }
}

void kv_write_row(const KvLayout& layout, void* k_region, void* v_region, int64_t cell, const void* k_row, const void* v_row) noexcept {
  const int64_t head_bytes = kv_head_row_bytes(layout);
  for (int64_t h = 0; h < layout.n_kv_heads; ++h) {
    write_k_head(layout, static_cast<unsigned char*>(k_region), cell, h, static_cast<const unsigned char*>(k_row) + h * head_bytes);
    std::memcpy(static_cast<unsigned char*>(v_region) + v_offset(layout, cell, h),
                static_cast<const unsigned char*>(v_row) + h * head_bytes, static_cast<size_t>(head_bytes));
  }
}

void kv_row_to_f32(const KvLayout& layout, const void* row, float* out) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(row);
  const int64_t n = int64_t{layout.n_kv_heads} * layout.head_dim;
  switch (layout.format) {
    case KvFormat::kF32: std::memcpy(out, bytes, sizeof(float) * static_cast<size_t>(n)); return;
    case KvFormat::kF16:
      for (int64_t i = 0; i < n; ++i) {
        uint16_t h;
        std::memcpy(&h, bytes + 2 * i, 2);
        out[i] = f16_to_f32(h);
      }
      return;
    case KvFormat::kQ8_0:
      for (int64_t i = 0; i < n; ++i) {
        const unsigned char* group = bytes + i / kQ8Group * kQ8Bytes;
        uint16_t d;
        std::memcpy(&d, group, 2);
        out[i] = f16_to_f32(d) * static_cast<float>(static_cast<int8_t>(group[2 + i % kQ8Group]));
      }
      return;
  }
}

void kv_copy_rows(const KvLayout& layout, void* k_region, void* v_region, int64_t src_cell, int64_t dst_cell, int64_t n_rows) noexcept {
  unsigned char row[4 * 1024];
  const int64_t head_bytes = kv_head_row_bytes(layout);
  auto* k = static_cast<unsigned char*>(k_region);
  auto* v = static_cast<unsigned char*>(v_region);
  for (int64_t i = 0; i < n_rows; ++i) {
    for (int64_t h = 0; h < layout.n_kv_heads; ++h) {
      for_each_k_piece(layout, src_cell + i, h,
                       [&](int64_t in_row, int64_t in_region, size_t bytes) { std::memcpy(row + in_row, k + in_region, bytes); });
      write_k_head(layout, k, dst_cell + i, h, row);
      std::memmove(v + v_offset(layout, dst_cell + i, h), v + v_offset(layout, src_cell + i, h), static_cast<size_t>(head_bytes));
    }
  }
}

KvStore kv_rotate_rows(const KvLayout& layout, void* k_region, int64_t cell, int64_t n_rows, KvRotate rotate, const float* cos,
                       const float* sin, bool write, int64_t* bad_row) noexcept {
  const KvLayout one_head{layout.format, 1, layout.head_dim};
  unsigned char row[4 * 1024];
  float x[1024];
  auto* k = static_cast<unsigned char*>(k_region);
  for (int64_t i = 0; i < n_rows; ++i) {
    for (int64_t h = 0; h < layout.n_kv_heads; ++h) {
      for_each_k_piece(layout, cell + i, h,
                       [&](int64_t in_row, int64_t in_region, size_t bytes) { std::memcpy(row + in_row, k + in_region, bytes); });
      kv_row_to_f32(one_head, row, x);
      rotate(x, 1, layout.head_dim, layout.head_dim, cos, sin);
      if (const KvStore state = judge(layout.format, x, layout.head_dim); state != KvStore::kOk) {
        *bad_row = i;
        return state;
      }
      if (!write) continue;
      encode_head(layout, x, row);
      write_k_head(layout, k, cell + i, h, row);
    }
  }
  return KvStore::kOk;
}

}  // namespace minfer::cpu
