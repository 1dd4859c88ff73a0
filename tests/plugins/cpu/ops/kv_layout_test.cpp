// KV regions: where elements lie (restated here), what is stored and refused, canonical rows, copies.
#include "kernels/kv_layout.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "bits.hpp"
#include "kernels/float16.hpp"

namespace {

using namespace minfer::cpu;
using Bytes = std::vector<unsigned char>;
using minfer::test::normal_values;

struct Regions {
  explicit Regions(const KvLayout& l, uint64_t n_blocks = 4)
      : layout(l), k(kv_region_bytes(l, n_blocks), 0xFF), v(kv_region_bytes(l, n_blocks), 0xFF) {}
  KvLayout layout;
  Bytes k, v;

  KvStore store(int64_t cell, const std::vector<float>& k_row, const std::vector<float>& v_row) {
    return kv_store_row(layout, k.data(), v.data(), cell, k_row.data(), v_row.data());
  }
  std::pair<Bytes, Bytes> read(int64_t cell) const {
    std::pair<Bytes, Bytes> rows{Bytes(static_cast<size_t>(kv_row_bytes(layout))), Bytes(static_cast<size_t>(kv_row_bytes(layout)))};
    kv_read_row(layout, k.data(), v.data(), cell, rows.first.data(), rows.second.data());
    return rows;
  }
};

std::vector<float> values_of(const KvLayout& layout, const Bytes& row) {
  std::vector<float> out(static_cast<size_t>(layout.n_kv_heads * layout.head_dim));
  kv_row_to_f32(layout, row.data(), out.data());
  return out;
}

template <class T>
T load(const Bytes& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace

TEST_CASE("cpu/kv_layout: elements lie where the header says", "[cpu]") {
  const int heads = 3, dim = 64;
  const size_t n = heads * dim;
  const auto k = normal_values(n, 1), v = normal_values(n, 2);
  for (const int64_t cell : {0, 15, 16, 63, 64 + 37, 3 * 64 + 63}) {
    const size_t block = static_cast<size_t>(cell) / 64, row = static_cast<size_t>(cell) % 64;
    Regions f32({KvFormat::kF32, heads, dim}), f16({KvFormat::kF16, heads, dim}), q8({KvFormat::kQ8_0, heads, dim});
    REQUIRE(f32.store(cell, k, v) == KvStore::kOk);
    REQUIRE(f16.store(cell, k, v) == KvStore::kOk);
    REQUIRE(q8.store(cell, k, v) == KvStore::kOk);
    int wrong = 0;
    for (size_t h = 0; h < heads; ++h) {
      for (size_t d = 0; d < dim; ++d) {
        const size_t base = (block * heads + h) * 64 * dim;  // elements before this block and head
        const size_t k_at = base + row / 16 * 16 * dim + d * 16 + row % 16;
        const size_t v_at = base + row * dim + d;
        wrong += load<float>(f32.k, 4 * k_at) != k[h * dim + d];
        wrong += load<float>(f32.v, 4 * v_at) != v[h * dim + d];
        wrong += load<uint16_t>(f16.k, 2 * k_at) != f32_to_f16(k[h * dim + d]);
        wrong += load<uint16_t>(f16.v, 2 * v_at) != f32_to_f16(v[h * dim + d]);
        // q8_0: 34 bytes per 32 elements; in K 16 positions side by side.
        const size_t k_group = base / 32 * 34 + row / 16 * 16 * (dim / 32) * 34 + d / 32 * 16 * 34;
        const size_t v_group = base / 32 * 34 + (row * (dim / 32) + d / 32) * 34;
        const auto k_quant = load<int8_t>(q8.k, k_group + 32 + d % 32 * 16 + row % 16);
        const float k_value = f16_to_f32(load<uint16_t>(q8.k, k_group + 2 * (row % 16))) * k_quant;
        const float v_value = f16_to_f32(load<uint16_t>(q8.v, v_group)) * load<int8_t>(q8.v, v_group + 2 + d % 32);
        wrong += !(std::fabs(k_value - k[h * dim + d]) < 0.02f);
        wrong += !(std::fabs(v_value - v[h * dim + d]) < 0.02f);
      }
    }
    INFO("cell " << cell);
    CHECK(wrong == 0);
  }
}

TEST_CASE("cpu/kv_layout: a store touches its own row only", "[cpu]") {
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
    const KvLayout layout{format, 2, 96};
    Regions regions(layout);
    const auto k = normal_values(192, 3), v = normal_values(192, 4);
    REQUIRE(regions.store(64 + 17, k, v) == KvStore::kOk);
    size_t k_touched = 0, v_touched = 0;
    const Bytes untouched(static_cast<size_t>(kv_row_bytes(layout)), 0xFF);
    for (int64_t cell = 0; cell < 256; ++cell) {
      const auto rows = regions.read(cell);
      k_touched += rows.first != untouched;
      v_touched += rows.second != untouched;
    }
    CHECK(k_touched == 1);
    CHECK(v_touched == 1);
    CHECK(regions.read(64 + 17).first != untouched);
    CHECK(regions.read(64 + 17).second != untouched);
  }
}

TEST_CASE("cpu/kv_layout: stored values are the nearest the format has", "[cpu]") {
  const auto k = normal_values(128, 5, 30.0f), v = normal_values(128, 6, 0.01f);
  Regions f16({KvFormat::kF16, 2, 64}), q8({KvFormat::kQ8_0, 2, 64}), f32({KvFormat::kF32, 2, 64});
  REQUIRE(f16.store(5, k, v) == KvStore::kOk);
  REQUIRE(q8.store(5, k, v) == KvStore::kOk);
  REQUIRE(f32.store(5, k, v) == KvStore::kOk);
  CHECK(values_of(f32.layout, f32.read(5).first) == k);
  CHECK(values_of(f32.layout, f32.read(5).second) == v);
  const auto k16 = values_of(f16.layout, f16.read(5).first), v8 = values_of(q8.layout, q8.read(5).second);
  for (size_t i = 0; i < k.size(); ++i) {
    CHECK(std::fabs(k16[i] - k[i]) <= std::fabs(k[i]) * 0x1p-11f);
    float amax = 0.0f;
    for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) amax = std::max(amax, std::fabs(v[j]));
    CHECK(std::fabs(v8[i] - v[i]) <= amax / 127.0f * 0.57f);  // half a step, and the rounding of the scale at the end of the range
  }
  std::vector<float> exact(128);
  for (size_t i = 0; i < 128; ++i) exact[i] = static_cast<float>(static_cast<int>(i % 32) * 8 - 121) * 0.25f;  // |q| reaches 127
  REQUIRE(q8.store(6, exact, exact) == KvStore::kOk);
  CHECK(values_of(q8.layout, q8.read(6).first) == exact);
  CHECK(values_of(q8.layout, q8.read(6).second) == exact);
  const std::vector<float> tiny(128, 1e-12f);  // the scale rounds to 0
  REQUIRE(q8.store(7, tiny, tiny) == KvStore::kOk);
  CHECK(values_of(q8.layout, q8.read(7).first) == std::vector<float>(128, 0.0f));
}

TEST_CASE("cpu/kv_layout: values that cannot be stored are refused and nothing is written", "[cpu]") {
  const std::vector<float> good(64, 1.0f);
  const auto with = [&](float x) {
    std::vector<float> row = good;
    row[37] = x;
    return row;
  };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
    Regions regions({format, 2, 32});
    const Bytes before = regions.k;
    for (const float bad : {nan, infinity, -infinity}) {
      CHECK(regions.store(9, with(bad), good) == KvStore::kNonFinite);
      CHECK(regions.store(9, good, with(bad)) == KvStore::kNonFinite);
    }
    const KvStore large = format == KvFormat::kF16 ? KvStore::kBeyondFormat : KvStore::kOk;
    CHECK(regions.store(10, with(65504.0f), with(-65504.0f)) == KvStore::kOk);
    Regions other({format, 2, 32});
    CHECK(other.store(9, with(65505.0f), good) == large);
    CHECK(other.store(9, good, with(-65505.0f)) == large);
    const KvStore huge = format == KvFormat::kF32 ? KvStore::kOk : KvStore::kBeyondFormat;
    Regions third({format, 2, 32});
    CHECK(third.store(9, good, with(3e38f)) == huge);
    CHECK((third.k == before) == (huge != KvStore::kOk));
    CHECK((third.v == before) == (huge != KvStore::kOk));
  }
}

TEST_CASE("cpu/kv_layout: canonical rows written elsewhere read back the same bits", "[cpu]") {
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
    const KvLayout layout{format, 3, 64};
    Regions from(layout), to(layout);
    const auto k = normal_values(192, 8), v = normal_values(192, 9);
    REQUIRE(from.store(200, k, v) == KvStore::kOk);
    const auto rows = from.read(200);
    kv_write_row(layout, to.k.data(), to.v.data(), 33, rows.first.data(), rows.second.data());
    CHECK(to.read(33) == rows);
    CHECK(to.read(34) == Regions(layout).read(34));
    // Canonical means [kv head][head_dim]: head 1 begins one head's bytes later.
    const auto values = values_of(layout, rows.first);
    for (const size_t i : {size_t{0}, size_t{63}, size_t{64}, size_t{191}}) CHECK(values[i] == Approx(k[i]).margin(0.02));
  }
}

TEST_CASE("cpu/kv_layout: copies rows between blocks, also down over themselves", "[cpu]") {
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
    const KvLayout layout{format, 2, 32};
    Regions regions(layout);
    std::vector<std::pair<Bytes, Bytes>> rows;
    for (int64_t cell = 0; cell < 256; ++cell) {
      const auto seed = static_cast<uint32_t>(cell);
      REQUIRE(regions.store(cell, normal_values(64, 1000 + seed), normal_values(64, 2000 + seed)) == KvStore::kOk);
      rows.push_back(regions.read(cell));
    }
    kv_copy_rows(layout, regions.k.data(), regions.v.data(), 70, 60, 100);  // overlapping
    int wrong = 0;
    for (int64_t cell = 0; cell < 256; ++cell) {
      const int64_t source = cell >= 60 && cell < 160 ? cell + 10 : cell;
      wrong += regions.read(cell) != rows[static_cast<size_t>(source)];
    }
    CHECK(wrong == 0);
    kv_copy_rows(layout, regions.k.data(), regions.v.data(), 0, 192, 64);  // a whole block
    for (int64_t row = 0; row < 64; ++row) wrong += regions.read(192 + row) != regions.read(row);
    CHECK(wrong == 0);
  }
}

TEST_CASE("cpu/kv_layout: sizes and supported shapes", "[cpu]") {
  CHECK(kv_region_bytes({KvFormat::kF16, 2, 64}, 64) == 64u * 64 * 2 * 64 * 2);
  CHECK(kv_region_bytes({KvFormat::kF32, 2, 64}, 1) == 64u * 2 * 64 * 4);
  CHECK(kv_region_bytes({KvFormat::kQ8_0, 8, 128}, 3) == 3u * 64 * 8 * 4 * 34);
  CHECK(kv_row_bytes({KvFormat::kQ8_0, 8, 128}) == 8 * 4 * 34);
  CHECK(kv_layout_supported({KvFormat::kF16, 2, 80}));
  CHECK(kv_layout_supported({KvFormat::kQ8_0, 2, 96}));
  CHECK_FALSE(kv_layout_supported({KvFormat::kQ8_0, 2, 80}));
  CHECK_FALSE(kv_layout_supported({KvFormat::kF16, 2, 72}));
  CHECK_FALSE(kv_layout_supported({KvFormat::kF16, 2, 0}));
  CHECK_FALSE(kv_layout_supported({KvFormat::kF16, 0, 64}));
  CHECK_FALSE(kv_layout_supported({KvFormat::kF16, 2, 2048}));
}
