// The KV of one layer on a device beside the reference's, and the runs that fill and read it. Blocks of the sequences lie scattered in a
// region that is larger than they need; what nobody stored is NaN.
#pragma once

#include "conformance/suite.hpp"

namespace minfer::conformance {

std::string_view kv_format_name(KvFormat format);
Limits attention_limits(KvFormat format);

// A row of a batch. seq -1: padding.
struct BatchRow {
  int32_t seq = 0;
  int32_t position = 0;
};
std::vector<BatchRow> consecutive_rows(int32_t seq, uint32_t first, uint32_t n);

class KvFixture {
 public:
  static constexpr uint32_t kLayer = 3;

  // Room for n_positions in each of n_seqs sequences; n_blocks of layout is chosen here.
  KvFixture(Context& context, KvLayout layout, uint32_t n_positions, uint32_t n_seqs = 1);

  // Allocates the regions if the device supports storing and attending with n_head heads and the window; kUnsupported otherwise.
  Status make(uint32_t n_head, uint32_t window = 0);

  // K and V of rows, [rows][n_head_kv * head_dim].
  std::vector<float> random_rows(size_t n, Fill fill = Fill::kGauss);
  Status store(const std::vector<BatchRow>& rows, Fill fill = Fill::kGauss);
  Status store(const std::vector<BatchRow>& rows, const std::vector<float>& k, const std::vector<float>& v);
  // Attends from every row with a random q and judges the result.
  Status attend(const std::vector<BatchRow>& rows, uint32_t n_head, uint32_t window = 0, Fill fill = Fill::kGauss);
  // The same in one plan: K and V of the rows are stored, then each attends.
  Status store_and_attend(const std::vector<BatchRow>& rows, uint32_t n_head, uint32_t window = 0, Fill fill = Fill::kGauss);
  // Attends with the given q, [rows][n_head * head_dim], and returns what came out, unjudged.
  Result<std::vector<float>> attention(const std::vector<BatchRow>& rows, const std::vector<float>& q, uint32_t n_head,
                                       uint32_t window = 0);
  // Reads stored V rows back through a window of one position, which sees nothing else, and compares them with the reference.
  Status check_v(const std::vector<BatchRow>& rows);

  // The description of such runs. nullptr: left out.
  Problem problem(const std::vector<BatchRow>& rows, const std::vector<float>* k, const std::vector<float>* v, const std::vector<float>* q,
                  uint32_t n_head, uint32_t window) const;
  // Runs a problem of this layer and judges it.
  Status run(const Problem& problem, const Limits& limits);

  Context& context() { return context_; }
  const KvLayout& layout() const { return layout_; }
  uint64_t width() const { return uint64_t{layout_.n_head_kv} * layout_.head_dim; }
  DeviceKvs& device_kvs() { return device_; }
  ReferenceKvs& reference_kvs() { return reference_; }
  ReferenceKv& reference() { return reference_.at(kLayer); }
  KvLayer layer() const { return device_.at(kLayer).layer(kLayer); }
  std::vector<int32_t>& table() { return table_; }
  uint32_t block(int32_t seq, uint32_t position) const;
  uint32_t n_ctx() const { return n_ctx_; }

 private:
  Context& context_;
  KvLayout layout_;
  uint32_t n_ctx_;
  uint32_t n_seqs_;
  std::vector<int32_t> table_;  // [seq][block of 64 positions]
  ReferenceKvs reference_;
  DeviceKvs device_;
};

}  // namespace minfer::conformance
