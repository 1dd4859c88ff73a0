#include "conformance/kv_fixture.hpp"

namespace minfer::conformance {

std::string_view kv_format_name(KvFormat format) { return format == KvFormat::kF32 ? "f32" : format == KvFormat::kF16 ? "f16" : "q8_0"; }

Limits attention_limits(KvFormat format) { return limits(format == KvFormat::kF32 ? 1e-8 : 1e-6); }

std::vector<BatchRow> consecutive_rows(int32_t seq, uint32_t first, uint32_t n) {
  std::vector<BatchRow> rows;
  for (uint32_t i = 0; i < n; ++i) rows.push_back({seq, static_cast<int32_t>(first + i)});
  return rows;
}

KvFixture::KvFixture(Context& context, KvLayout layout, uint32_t n_positions, uint32_t n_seqs)
    : context_(context), layout_(layout), n_ctx_(n_positions), n_seqs_(n_seqs) {
  const uint32_t per_seq = (n_positions + kKvBlockPositions - 1) / kKvBlockPositions;
  layout_.n_blocks = per_seq * n_seqs + 3;
  const std::vector<uint32_t> blocks = context.random.permutation(layout_.n_blocks);
  table_.assign(blocks.begin(), blocks.begin() + static_cast<ptrdiff_t>(per_seq) * n_seqs);
  reference_.emplace(kLayer, ReferenceKv(layout_));
}

uint32_t KvFixture::block(int32_t seq, uint32_t position) const {
  return static_cast<uint32_t>(table_[static_cast<size_t>(seq) * (table_.size() / n_seqs_) + position / kKvBlockPositions]);
}

Status KvFixture::make(uint32_t n_head, uint32_t window) {
  const std::vector<float> kv(width()), q(uint64_t{n_head} * layout_.head_dim);
  const Problem sample = problem({{0, 0}}, &kv, &kv, &q, n_head, window);
  Trial trial(context_.device, sample);
  MINFER_ASSIGN(const bool yes, trial.supported());
  if (!yes) return unsupported("not supported");
  MINFER_ASSIGN(device_[kLayer], make_kv(context_.device, layout_));
  return {};
}

Problem KvFixture::problem(const std::vector<BatchRow>& rows, const std::vector<float>* k, const std::vector<float>* v,
                           const std::vector<float>* q, uint32_t n_head, uint32_t window) const {
  Problem problem;
  problem.n_ctx = n_ctx_;
  problem.kv(kLayer, layout_);
  std::vector<int32_t> positions, seqs;
  for (const BatchRow& row : rows) {
    positions.push_back(row.position);
    seqs.push_back(row.seq);
  }
  const ValueId position_input = problem.input(InputKind::kPositions, positions), seq_input = problem.input(InputKind::kRowSeq, seqs);
  const ValueId table = problem.input(InputKind::kBlockTable, Shape{table_.size() / n_seqs_, n_seqs_}, table_);
  OpAttrs attrs;
  attrs.n_head = n_head;
  attrs.n_head_kv = layout_.n_head_kv;
  attrs.head_dim = layout_.head_dim;
  attrs.attn_scale = 1 / std::sqrt(static_cast<float>(layout_.head_dim));
  attrs.window = window;
  if (k) {
    const ValueId k_source = problem.source(Shape{width(), rows.size()}, *k), v_source = problem.source(Shape{width(), rows.size()}, *v);
    problem.node(Op::kKvStore, {k_source, v_source, position_input, seq_input, table}, attrs, kLayer);
  }
  if (q) {
    const ValueId q_source = problem.source(Shape{uint64_t{n_head} * layout_.head_dim, rows.size()}, *q);
    problem.node(Op::kAttention, {q_source, position_input, seq_input, table}, attrs, kLayer);
  }
  return problem;
}

Status KvFixture::run(const Problem& problem, const Limits& limits) {
  Trial trial(context_.device, problem, &device_);
  MINFER_TRY(trial.prepare());
  MINFER_TRY(trial.run());
  return judge_outputs(trial, problem, evaluate(problem, Contract::kFloat, reference_), limits);
}

std::vector<float> KvFixture::random_rows(size_t n, Fill fill) { return random_floats(width(), n, fill, context_.random); }

Status KvFixture::store(const std::vector<BatchRow>& rows, const std::vector<float>& k, const std::vector<float>& v) {
  return run(problem(rows, &k, &v, nullptr, layout_.n_head_kv, 0), kOneUlp);
}

Status KvFixture::store(const std::vector<BatchRow>& rows, Fill fill) {
  const std::vector<float> k = random_rows(rows.size(), fill), v = random_rows(rows.size(), fill);
  return store(rows, k, v);
}

Status KvFixture::attend(const std::vector<BatchRow>& rows, uint32_t n_head, uint32_t window, Fill fill) {
  const std::vector<float> q = random_floats(uint64_t{n_head} * layout_.head_dim, rows.size(), fill, context_.random);
  return run(problem(rows, nullptr, nullptr, &q, n_head, window), attention_limits(layout_.format));
}

Status KvFixture::store_and_attend(const std::vector<BatchRow>& rows, uint32_t n_head, uint32_t window, Fill fill) {
  const std::vector<float> k = random_rows(rows.size(), fill), v = random_rows(rows.size(), fill);
  const std::vector<float> q = random_floats(uint64_t{n_head} * layout_.head_dim, rows.size(), Fill::kGauss, context_.random);
  return run(problem(rows, &k, &v, &q, n_head, window), attention_limits(layout_.format));
}

Result<std::vector<float>> KvFixture::attention(const std::vector<BatchRow>& rows, const std::vector<float>& q, uint32_t n_head,
                                                uint32_t window) {
  const Problem described = problem(rows, nullptr, nullptr, &q, n_head, window);
  Trial trial(context_.device, described, &device_);
  MINFER_TRY(trial.prepare());
  MINFER_TRY(trial.run());
  const std::span<const float> out = trial.output(described.graph().nodes.back().outputs[0]);
  return std::vector<float>(out.begin(), out.end());
}

Status KvFixture::check_v(const std::vector<BatchRow>& rows) {
  const std::vector<float> q(rows.size() * width(), 0.25f);
  return run(problem(rows, nullptr, nullptr, &q, layout_.n_head_kv, 1), layout_.format == KvFormat::kQ8_0 ? limits(1e-6) : kOneUlp);
}

}  // namespace minfer::conformance
