// The scalar reference: every operation of the ABI in double precision on decoded weights, by the contracts of minfer/abi/graph.h.
//
// Adding an operation: evaluate it in reference.cpp, write cases for it beside its relatives (*_cases.cpp), and plant a fault of it
// in tests/conformance/faulty_backend.cpp that they must find.
#pragma once

#include "conformance/problem.hpp"

namespace minfer::conformance {

// How a product with quantised weights reads its left side: both are legitimate, and a backend does one or the other.
enum class Contract {
  kFloat,  // as it is
  kQ8,     // in blocks of 32 rounded to 8 bits: q = rint(x * (127 / amax)), value q * (amax / 127), arithmetic of f32
};

// K and V of one layer as attention sees them: values that have been through the region's format.
class ReferenceKv {
 public:
  explicit ReferenceKv(const KvLayout& layout);
  const KvLayout& layout() const { return layout_; }
  uint64_t width() const { return uint64_t{layout_.n_head_kv} * layout_.head_dim; }
  float* k(uint64_t cell) { return &k_[cell * width()]; }
  float* v(uint64_t cell) { return &v_[cell * width()]; }
  const float* k(uint64_t cell) const { return &k_[cell * width()]; }
  const float* v(uint64_t cell) const { return &v_[cell * width()]; }
  void store(uint64_t cell, const double* k, const double* v);
  void copy(const KvRowCopy& copy);
  void rotate(const KvRotation& rotation, const std::vector<double>* factors, std::span<const KvRows> rows);

 private:
  KvLayout layout_;
  std::vector<float> k_, v_;  // [cell][n_head_kv][head_dim]; NaN where nothing was stored
};
using ReferenceKvs = std::map<uint32_t, ReferenceKv>;  // by layer

// x after a trip through a KV format.
void through_format(KvFormat format, const double* x, uint64_t n, float* out);

struct RowValues {
  uint64_t width = 0;
  std::vector<double> x;
  // Sum over a row of the squared sizes that errors are measured against: of the values, or of the terms that make them up where
  // those are larger (a sum that cancels).
  std::vector<double> energy;
  std::vector<bool> defined;  // rows of padding have undefined values

  uint64_t rows() const { return energy.size(); }
};

// The values of all nodes' outputs, by value id. Stores of KV go to `kvs`, which holds every layer of the problem.
std::vector<RowValues> evaluate(const Problem& problem, Contract contract, ReferenceKvs& kvs);

}  // namespace minfer::conformance
