#include "conformance/random_data.hpp"

#include <cstring>
#include <numeric>

#include "conformance/float16.hpp"
#include "engine/graph/graph_builder.hpp"

namespace minfer::conformance {
namespace {

void put_u16(std::byte* at, uint16_t bits) { std::memcpy(at, &bits, 2); }

float random_float(Fill fill, Random& random) {
  switch (fill) {
    case Fill::kUniform: return static_cast<float>(random.uniform(-1, 1));
    case Fill::kEqual: return 0.71f;
    case Fill::kTiny: return static_cast<float>(random.gauss() * 1e-3);
    case Fill::kDenormal: return static_cast<float>(random.gauss() * 1e-40);
    case Fill::kMax: return 1000.0f;
    default: return static_cast<float>(random.gauss());
  }
}

// The scale of a block. Signs of both kinds occur; 0.0039 times a quantised value is about what models have.
uint16_t random_scale(Fill fill, Random& random) {
  switch (fill) {
    case Fill::kEqual: return double_to_f16(0.0039);
    case Fill::kTiny: return static_cast<uint16_t>(1 + random.below(1023));  // subnormal
    case Fill::kMax: return double_to_f16(60000);
    case Fill::kZeros:
      if (random.below(3) == 0) return 0;
      [[fallthrough]];
    default: return double_to_f16(random.uniform(0.5, 1.5) * (random.below(4) ? 0.0039 : -0.0039));
  }
}

void fill_block(uint32_t dtype, std::byte* block, Fill fill, uint8_t extreme, Random& random) {
  const sdk::DTypeInfo& info = *sdk::find_dtype(dtype);
  for (uint32_t i = 0; i < info.block_bytes; ++i) block[i] = static_cast<std::byte>(random.next() >> 56);
  if (fill == Fill::kEqual) std::memset(block, 0x5a, info.block_bytes);
  if (fill == Fill::kMax) std::memset(block, extreme, info.block_bytes);
  const ScalePlaces places = scale_places(dtype);
  put_u16(block + places.d, random_scale(fill, random));
  if (places.min >= 0) put_u16(block + places.min, random_scale(fill, random));
}

void put_float(uint32_t dtype, std::byte* at, double value) {
  if (dtype == MI_TYPE_F16) return put_u16(at, double_to_f16(value));
  if (dtype == MI_TYPE_BF16) return put_u16(at, double_to_bf16(value));
  const auto single = static_cast<float>(value);
  std::memcpy(at, &single, 4);
}

}  // namespace

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

double Random::gauss() {
  const double u = 1 - unit();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * unit());
}

std::vector<uint32_t> Random::permutation(uint32_t n) {
  std::vector<uint32_t> out(n);
  std::iota(out.begin(), out.end(), 0u);
  for (uint32_t i = n; i > 1; --i) std::swap(out[i - 1], out[below(i)]);
  return out;
}

uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

std::string_view fill_name(Fill fill) {
  constexpr std::string_view kNames[] = {"gauss", "uniform", "outliers", "zeros", "equal", "tiny", "denormal", "max"};
  return kNames[static_cast<size_t>(fill)];
}

std::vector<float> random_floats(uint64_t width, uint64_t rows, Fill fill, Random& random) {
  std::vector<float> out(width * rows);
  for (float& x : out) x = random_float(fill, random);
  const uint64_t outlier = random.below(static_cast<uint32_t>(width));
  for (uint64_t r = 0; r < rows; ++r) {
    if (fill == Fill::kOutliers) out[r * width + outlier] *= 1000;
    if (fill == Fill::kMax && r % 2)
      for (uint64_t i = 0; i < width; ++i) out[r * width + i] *= -1;
    if (fill != Fill::kZeros) continue;
    for (uint64_t i = 0; i < width; ++i)
      if (r == 0 || (i / 32 + r) % 3 == 0) out[r * width + i] = 0;
  }
  return out;
}

Tensor random_matrix(uint32_t dtype, uint64_t width, uint64_t rows, Fill fill, Random& random) {
  const sdk::DTypeInfo& info = *sdk::find_dtype(dtype);
  Tensor out{dtype, Shape{width, rows}, kRoleMatrix, {}, {}};
  out.bytes.resize(rows * sdk::row_bytes(dtype, width));
  std::byte* at = out.bytes.data();
  constexpr uint8_t kExtremes[] = {0x00, 0xff, 0x80, 0x7f, 0xf0, 0x0f};
  for (uint64_t r = 0; r < rows; ++r) {
    const uint8_t extreme = kExtremes[(r + random.below(2)) % 6];
    for (uint64_t i = 0; i < width; i += info.block_elements, at += info.block_bytes) {
      if (is_quantised(dtype))
        fill_block(dtype, at, fill, extreme, random);
      else if (fill == Fill::kZeros && (i / 32 + r) % 3 == 0)
        put_float(dtype, at, 0);
      else if (fill == Fill::kTiny)
        put_float(dtype, at, random.gauss() * (dtype == MI_TYPE_F16 ? 0x1p-18 : 1e-20));
      else
        put_float(dtype, at, fill == Fill::kMax ? 60000 : random_float(fill == Fill::kEqual ? fill : Fill::kGauss, random) * 0.05);
    }
  }
  out.values = decode(dtype, out.bytes, width * rows);
  return out;
}

Tensor vector_tensor(const std::vector<float>& values) {
  Tensor out{MI_TYPE_F32, Shape{values.size()}, kRoleVector, {}, {values.begin(), values.end()}};
  out.bytes.resize(values.size() * 4);
  std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

}  // namespace minfer::conformance
