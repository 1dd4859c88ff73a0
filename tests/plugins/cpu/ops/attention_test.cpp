// Attention: bits against the contract restated here on plain arrays, values against double, and independence of instruction
// set, tiling, block placement and of whatever lies outside a row's window.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "bits.hpp"
#include "kernels/math.hpp"

namespace {

using namespace minfer::cpu;
using namespace minfer::test;

struct RowSpec {
  int32_t sequence;  // -1: padding
  int32_t position;
  int32_t first;
};

struct Shape {
  KvFormat format;
  int32_t n_heads;
  int32_t n_kv_heads;
  int32_t head_dim;
};

// A batch with everything it reads. Cells that no row sees hold 0xFF bytes, which are NaN in every format.
class Problem {
 public:
  Problem(const Shape& shape, const std::vector<RowSpec>& specs, uint32_t seed = 1, float q_size = 0.7f)
      : shape_(shape), specs_(specs), layout_{shape.format, shape.n_kv_heads, shape.head_dim} {
    int32_t n_sequences = 0, last = 0;
    for (const RowSpec& spec : specs) {
      n_sequences = std::max(n_sequences, spec.sequence + 1);
      last = std::max(last, spec.position);
    }
    blocks_per_sequence_ = last / kKvBlock + 1;
    const int32_t n_blocks = n_sequences * blocks_per_sequence_ + 1;
    table_.resize(static_cast<size_t>(n_blocks));
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), std::mt19937(seed));
    k_region_.assign(kv_region_bytes(layout_, static_cast<uint64_t>(n_blocks)), 0xFF);
    v_region_ = k_region_;
    const size_t row = static_cast<size_t>(shape.n_kv_heads * shape.head_dim);
    k_.resize(static_cast<size_t>(n_sequences * blocks_per_sequence_ * kKvBlock) * row);
    v_.resize(k_.size());
    std::mt19937 generator(seed + 1);
    for (int32_t s = 0; s < n_sequences; ++s) {
      for (int32_t p = 0; p < blocks_per_sequence_ * kKvBlock; ++p) {
        if (!seen(s, p)) continue;
        float* k = k_.data() + at(s, p);
        float* v = v_.data() + at(s, p);
        for (size_t i = 0; i < row; ++i) {
          k[i] = representable(generator, i);
          v[i] = representable(generator, i);
        }
        REQUIRE(kv_store_row(layout_, k_region_.data(), v_region_.data(), cell(s, p), k, v) == KvStore::kOk);
      }
    }
    q_ = normal_values(specs.size() * width(), seed + 2, q_size);
    for (const RowSpec& spec : specs) {
      const int32_t* blocks = spec.sequence < 0 ? nullptr : table_.data() + spec.sequence * blocks_per_sequence_;
      rows_.push_back({blocks, spec.position, spec.first});
    }
  }

  size_t width() const { return static_cast<size_t>(shape_.n_heads * shape_.head_dim); }
  int32_t n_rows() const { return static_cast<int32_t>(specs_.size()); }
  int32_t group() const { return shape_.n_heads / shape_.n_kv_heads; }

  // All rows, in units of tile_rows rows and tile_heads query heads. Padding rows keep the 7 that the output starts with.
  std::vector<float> attend(const OpKernels& kernels, int32_t tile_rows, int32_t tile_heads) const {
    std::vector<float> out(specs_.size() * width(), 7.0f);
    const AttentionArgs args{layout_,
                             shape_.n_heads,
                             scale(),
                             k_region_.data(),
                             v_region_.data(),
                             q_.data(),
                             static_cast<int64_t>(width()),
                             out.data(),
                             static_cast<int64_t>(width()),
                             rows_.data()};
    int32_t last = 0;
    for (const RowSpec& spec : specs_) last = std::max(last, spec.position);
    const size_t bytes = attention_scratch_bytes(shape_.head_dim, tile_rows, tile_heads, last);
    std::vector<unsigned char> scratch(bytes + 64 + 64, 0xFF);  // NaN at the start; the last bytes are guards
    auto* aligned = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
    for (int32_t h = 0; h < shape_.n_heads; h += group()) {
      for (int32_t part = 0; part < group(); part += tile_heads) {
        for (int32_t r = 0; r < n_rows(); r += tile_rows) {
          const AttentionUnit unit{h + part, h + std::min(part + tile_heads, group()), r, std::min(r + tile_rows, n_rows())};
          kernels.attend(args, unit, aligned);
        }
      }
    }
    CHECK(std::count(aligned + bytes, aligned + bytes + 64, 0xFF) == 64);
    return out;
  }

  // The contract in attention.hpp, in float.
  std::vector<float> model() const {
    std::vector<float> out(specs_.size() * width(), 7.0f);
    for_each_head(
        [&](const RowSpec& spec, const float* q, const float* k, const float* v, size_t step, float* y) {
          const auto dim = static_cast<size_t>(shape_.head_dim);
          std::vector<float> ms, ls, os;
          for (int32_t start = spec.first / 256 * 256; start <= spec.position; start += 256) {
            std::vector<float> s;
            const int32_t begin = std::max(start, spec.first), end = std::min(start + 255, spec.position);
            for (int32_t p = begin; p <= end; ++p) {
              float dot = 0.0f;
              for (size_t d = 0; d < dim; ++d) dot = std::fma(q[d], k[static_cast<size_t>(p) * step + d], dot);
              s.push_back(dot * scale());
            }
            const float m = *std::max_element(s.begin(), s.end());
            float lane[16] = {};
            std::vector<float> o(dim, 0.0f);
            for (int32_t p = begin; p <= end; ++p) {
              const float e = exp_f32(s[static_cast<size_t>(p - begin)] - m);
              lane[p % 16] += e;
              for (size_t d = 0; d < dim; ++d) o[d] = std::fma(e, v[static_cast<size_t>(p) * step + d], o[d]);
            }
            float a[8], b[4];
            for (int i = 0; i < 8; ++i) a[i] = lane[i] + lane[i + 8];
            for (int i = 0; i < 4; ++i) b[i] = a[i] + a[i + 4];
            ms.push_back(m);
            ls.push_back((b[0] + b[2]) + (b[1] + b[3]));
            os.insert(os.end(), o.begin(), o.end());
          }
          const float top = *std::max_element(ms.begin(), ms.end());
          float l = 0.0f;
          std::vector<float> o(dim, 0.0f);
          for (size_t c = 0; c < ms.size(); ++c) {
            const float w = exp_f32(ms[c] - top);
            l = std::fma(ls[c], w, l);
            for (size_t d = 0; d < dim; ++d) o[d] = std::fma(os[c * dim + d], w, o[d]);
          }
          for (size_t d = 0; d < dim; ++d) y[d] = o[d] / l;
        },
        &out);
    return out;
  }

  // Softmax attention in double.
  std::vector<float> exact() const {
    std::vector<float> out(specs_.size() * width(), 7.0f);
    for_each_head(
        [&](const RowSpec& spec, const float* q, const float* k, const float* v, size_t step, float* y) {
          const auto dim = static_cast<size_t>(shape_.head_dim);
          std::vector<double> o(dim, 0.0), s;
          for (int32_t p = spec.first; p <= spec.position; ++p) {
            double dot = 0.0;
            for (size_t d = 0; d < dim; ++d) dot += static_cast<double>(q[d]) * k[static_cast<size_t>(p) * step + d];
            s.push_back(dot * scale());
          }
          const double m = *std::max_element(s.begin(), s.end());
          double l = 0.0;
          for (int32_t p = spec.first; p <= spec.position; ++p) {
            const double e = std::exp(s[static_cast<size_t>(p - spec.first)] - m);
            l += e;
            for (size_t d = 0; d < dim; ++d) o[d] += e * v[static_cast<size_t>(p) * step + d];
          }
          for (size_t d = 0; d < dim; ++d) y[d] = static_cast<float>(o[d] / l);
        },
        &out);
    return out;
  }

  // Fills one position of V (f16 or f32) with NaN, for every head.
  void poison_v(int32_t sequence, int32_t position) {
    std::vector<unsigned char> k_row(static_cast<size_t>(kv_row_bytes(layout_))), v_row = k_row;
    kv_read_row(layout_, k_region_.data(), v_region_.data(), cell(sequence, position), k_row.data(), v_row.data());
    std::fill(v_row.begin(), v_row.end(), static_cast<unsigned char>(0xFF));
    kv_write_row(layout_, k_region_.data(), v_region_.data(), cell(sequence, position), k_row.data(), v_row.data());
  }

 private:
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }
  size_t at(int32_t sequence, int32_t position) const {
    const auto row = static_cast<size_t>(sequence * blocks_per_sequence_ * kKvBlock + position);
    return row * static_cast<size_t>(shape_.n_kv_heads * shape_.head_dim);
  }
  int64_t cell(int32_t sequence, int32_t position) const {
    return int64_t{table_[static_cast<size_t>(sequence * blocks_per_sequence_ + position / kKvBlock)]} * kKvBlock + position % kKvBlock;
  }
  bool seen(int32_t sequence, int32_t position) const {
    for (const RowSpec& spec : specs_) {
      if (spec.sequence == sequence && spec.first <= position && position <= spec.position) return true;
    }
    return false;
  }
  // Values that f16 and q8_0 hold exactly: whole multiples of 1/64 up to 127/64, the first of each 32 being the largest.
  static float representable(std::mt19937& generator, size_t i) {
    const int q = static_cast<int>(generator() % 255) - 127;
    return static_cast<float>(i % 32 == 0 ? (q < 0 ? -127 : 127) : q) * 0x1p-6f;
  }
  template <class Body>
  void for_each_head(Body body, std::vector<float>* out) const {
    const auto dim = static_cast<size_t>(shape_.head_dim);
    for (size_t r = 0; r < specs_.size(); ++r) {
      if (specs_[r].sequence < 0) continue;
      for (int32_t h = 0; h < shape_.n_heads; ++h) {
        const size_t kv = at(specs_[r].sequence, 0) + static_cast<size_t>(h / group()) * dim;
        const size_t head = r * width() + static_cast<size_t>(h) * dim;
        body(specs_[r], q_.data() + head, k_.data() + kv, v_.data() + kv, static_cast<size_t>(shape_.n_kv_heads) * dim, out->data() + head);
      }
    }
  }

  Shape shape_;
  std::vector<RowSpec> specs_;
  KvLayout layout_;
  int32_t blocks_per_sequence_ = 0;
  std::vector<int32_t> table_;
  std::vector<unsigned char> k_region_, v_region_;
  std::vector<float> k_, v_, q_;
  std::vector<AttentionRow> rows_;
};

std::vector<RowSpec> consecutive(int32_t sequence, int32_t begin, int32_t n, int32_t window) {
  std::vector<RowSpec> rows;
  for (int32_t p = begin; p < begin + n; ++p) rows.push_back({sequence, p, std::max(0, p + 1 - window)});
  return rows;
}

std::vector<std::vector<RowSpec>> batches() {
  std::vector<std::vector<RowSpec>> all;
  all.push_back(consecutive(0, 0, 17, 100000));
  all.push_back(consecutive(0, 58, 13, 100000));   // over 64
  all.push_back(consecutive(0, 250, 11, 100000));  // over 256
  all.push_back(consecutive(0, 515, 9, 100));      // a window that starts in another chunk
  all.push_back(consecutive(0, 70, 16, 5));        // a window shorter than a tile
  // Decode of several sequences with a padding row; positions of every kind.
  all.push_back({{0, 0, 0}, {1, 300, 0}, {-1, 0, 0}, {2, 700, 513}, {2, 701, 514}, {3, 255, 0}, {4, 256, 256}, {5, 63, 63}});
  // One sequence, no order, windows far apart.
  all.push_back({{0, 600, 590}, {0, 3, 0}, {0, 271, 250}, {0, 600, 0}});
  return all;
}

const Shape kShapes[] = {{KvFormat::kF16, 14, 2, 64}, {KvFormat::kF32, 3, 3, 32}, {KvFormat::kQ8_0, 4, 2, 96},
                         {KvFormat::kF16, 2, 1, 128}, {KvFormat::kF32, 7, 1, 80}, {KvFormat::kQ8_0, 7, 1, 64}};

}  // namespace

TEST_CASE("cpu/attention: baseline does what the contract says to the bit", "[cpu]") {
  for (const Shape& shape : kShapes) {
    for (const auto& batch : batches()) {
      const Problem problem(shape, batch);
      const auto out = problem.attend(op_kernels(Isa::kBaseline), problem.n_rows(), problem.group());
      CHECK(first_difference(out, problem.model()) == -1);
    }
  }
}

TEST_CASE("cpu/attention: results are close to softmax attention in double", "[cpu]") {
  for (const Shape& shape : kShapes) {
    for (const auto& batch : batches()) {
      const Problem problem(shape, batch);
      const auto out = problem.attend(op_kernels(Isa::kBaseline), problem.n_rows(), problem.group()), exact = problem.exact();
      double worst = 0.0;
      for (size_t i = 0; i < out.size(); ++i) {
        REQUIRE(std::isfinite(out[i]));
        worst = std::max(worst, std::fabs(static_cast<double>(out[i]) - exact[i]));
      }
      CHECK(worst < 2e-6);
    }
  }
}

static void equals_baseline(const OpKernels& wide) {
  for (const Shape& shape : kShapes) {
    for (const auto& batch : batches()) {
      const Problem problem(shape, batch);
      const auto expected = problem.attend(op_kernels(Isa::kBaseline), problem.n_rows(), problem.group());
      const int32_t half_group = (problem.group() + 1) / 2;
      CHECK(first_difference(problem.attend(wide, problem.n_rows(), problem.group()), expected) == -1);
      CHECK(first_difference(problem.attend(wide, 1, problem.group()), expected) == -1);
      CHECK(first_difference(problem.attend(wide, 3, half_group), expected) == -1);
      CHECK(first_difference(problem.attend(wide, 2, 1), expected) == -1);
      CHECK(first_difference(problem.attend(op_kernels(Isa::kBaseline), 4, half_group), expected) == -1);
    }
  }
}
TEST_CASE("cpu/attention: AVX2 gives the bits of baseline whatever the tiling", "[cpu]") { equals_baseline(named(avx2_or_skip(), "avx2")); }
TEST_CASE("cpu/attention: avx512 gives the bits of baseline whatever the tiling", "[cpu]") {
  equals_baseline(named(avx512_or_skip(), "avx512"));
}
TEST_CASE("cpu/attention: emulated avx512 gives the bits of baseline whatever the tiling", "[cpu]") {
  equals_baseline(named(emulated_avx512_or_skip(), "avx512"));
}

// One row at a time, as a decode step asks: every size of group at every kind of depth and window. A sequence for each row, so that all
// it does not see is NaN.
static void decodes(const OpKernels& wide) {
  std::vector<RowSpec> rows;
  for (const int32_t position : {0, 7, 15, 16, 63, 64, 65, 254, 255, 256, 257, 511, 2048})
    rows.push_back({static_cast<int32_t>(rows.size()), position, 0});
  for (const auto& [position, first] : {std::pair{70, 5}, std::pair{100, 100}, std::pair{300, 250}, std::pair{530, 241}})
    rows.push_back({static_cast<int32_t>(rows.size()), position, first});
  const Shape shapes[] = {{KvFormat::kF16, 1, 1, 128}, {KvFormat::kF16, 4, 2, 80},  {KvFormat::kF16, 3, 1, 48},
                          {KvFormat::kF16, 4, 1, 64},  {KvFormat::kF16, 5, 1, 16},  {KvFormat::kF16, 6, 1, 96},
                          {KvFormat::kF16, 14, 2, 64}, {KvFormat::kF16, 8, 1, 112}, {KvFormat::kF16, 9, 1, 32},
                          {KvFormat::kF16, 16, 1, 16}, {KvFormat::kF16, 48, 1, 16}, {KvFormat::kF16, 49, 1, 16},
                          {KvFormat::kF32, 7, 1, 48},  {KvFormat::kF32, 2, 1, 64},  {KvFormat::kQ8_0, 7, 1, 32}};
  for (const Shape& shape : shapes) {
    const Problem problem(shape, rows);
    const auto expected = problem.attend(op_kernels(Isa::kBaseline), 1, problem.group());
    CAPTURE(shape.n_heads, shape.head_dim, static_cast<int>(shape.format));
    CHECK(first_difference(problem.attend(wide, 1, problem.group()), expected) == -1);
  }
  // Scores so far apart that some weights are subnormal or 0; and some that overflow, whose rows are NaN.
  const Shape shape{KvFormat::kF16, 7, 1, 64};
  const Problem far(shape, rows, 1, 12.0f), beyond(shape, rows, 1, 1e38f);
  const auto expected = far.attend(op_kernels(Isa::kBaseline), 1, 7);
  CHECK(first_difference(far.attend(wide, 1, 7), expected) == -1);
  CHECK(std::isfinite(expected[0]));
  const auto is_nan = [](float x) { return std::isnan(x); };
  auto baseline = beyond.attend(op_kernels(Isa::kBaseline), 1, 7), out = beyond.attend(wide, 1, 7);
  CHECK(std::count_if(baseline.begin(), baseline.end(), is_nan) > 1000);
  for (std::vector<float>* values : {&baseline, &out}) std::replace_if(values->begin(), values->end(), is_nan, 0.0f);
  CHECK(first_difference(out, baseline) == -1);
}
TEST_CASE("cpu/attention: AVX2 decodes with the bits of baseline for every size of group", "[cpu]") {
  decodes(named(avx2_or_skip(), "avx2"));
}
TEST_CASE("cpu/attention: avx512 decodes with the bits of baseline for every size of group", "[cpu]") {
  decodes(named(avx512_or_skip(), "avx512"));
}
TEST_CASE("cpu/attention: emulated avx512 decodes with the bits of baseline for every size of group", "[cpu]") {
  decodes(named(emulated_avx512_or_skip(), "avx512"));
}

static void agrees_for_rows(const OpKernels& wide) {
  for (int32_t n = 1; n <= 17; ++n) {
    const Problem problem({KvFormat::kF16, 7, 1, 32}, consecutive(0, 250, n, 100000), static_cast<uint32_t>(n));
    CHECK(first_difference(problem.attend(wide, n, 7), problem.model()) == -1);
  }
  for (const int32_t window : {100000, 70}) {
    const Problem problem({KvFormat::kF16, 6, 2, 32}, consecutive(0, 0, 300, window));
    const auto expected = problem.model();
    CHECK(first_difference(problem.attend(wide, 64, 3), expected) == -1);
    CHECK(first_difference(problem.attend(wide, 300, 3), expected) == -1);
  }
}
TEST_CASE("cpu/attention: AVX2 agrees for 1 to 17 rows and past a slab", "[cpu]") { agrees_for_rows(named(avx2_or_skip(), "avx2")); }
TEST_CASE("cpu/attention: avx512 agrees for 1 to 17 rows and past a slab", "[cpu]") { agrees_for_rows(named(avx512_or_skip(), "avx512")); }
TEST_CASE("cpu/attention: emulated avx512 agrees for 1 to 17 rows and past a slab", "[cpu]") {
  agrees_for_rows(named(emulated_avx512_or_skip(), "avx512"));
}

TEST_CASE("cpu/attention: prefill and decode of the same row agree to the bit", "[cpu]") {
  for (const OpKernels* kernels : all_tables()) {
    const Problem problem({KvFormat::kF16, 4, 2, 64}, consecutive(0, 240, 40, 100000));
    const auto together = problem.attend(*kernels, problem.n_rows(), 2);
    const auto one_by_one = problem.attend(*kernels, 1, 1);
    CHECK(first_difference(together, one_by_one) == -1);
    CHECK(std::isfinite(together[0]));
  }
}

TEST_CASE("cpu/attention: a NaN outside a row's window does not reach it", "[cpu]") {
  for (const OpKernels* kernels : all_tables()) {
    for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
      for (const size_t window : {5, 9}) {  // with 5 no position is seen by all rows of a tile, with 9 some are
        for (const int32_t tile_rows : {18, 1}) {
          Problem problem({format, 2, 2, 32}, consecutive(0, 60, 18, static_cast<int32_t>(window)));
          const auto clean = problem.attend(*kernels, tile_rows, 1);
          problem.poison_v(0, 65);  // the newest position of row 5
          const auto poisoned = problem.attend(*kernels, tile_rows, 1);
          for (size_t r = 0; r < 18; ++r) {
            const bool sees = r >= 5 && r < 5 + window;
            for (size_t i = 0; i < problem.width(); ++i) {
              const float x = poisoned[r * problem.width() + i];
              if (sees ? !std::isnan(x) : bits_of(x) != bits_of(clean[r * problem.width() + i])) {
                FAIL("row " << r << " element " << i << " is " << x);
              }
            }
          }
          CHECK(std::isfinite(clean[0]));
        }
      }
    }
  }
}
