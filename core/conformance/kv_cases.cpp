// What the KV must keep: the rows of every sequence at any block, copies, rotations, padding, refused positions, values that a format
// cannot hold.
#include <algorithm>
#include <cstring>
#include <limits>

#include "conformance/kv_fixture.hpp"

namespace minfer::conformance {
namespace {

constexpr uint32_t kHeads = 4, kKvHeads = 2, kHeadDim = 64;

struct Regions {
  std::vector<std::byte> k, v;
  friend bool operator==(const Regions&, const Regions&) = default;
};
Result<Regions> read_regions(KvFixture& kv) {
  Regions out;
  MINFER_ASSIGN(out.k, read_all(*kv.layer().k));
  MINFER_ASSIGN(out.v, read_all(*kv.layer().v));
  return out;
}
Status check_unchanged(KvFixture& kv, const Regions& before, std::string_view by) {
  MINFER_ASSIGN(const Regions after, read_regions(kv));
  if (after == before) return {};
  return invalid("the KV regions were changed by {}", by);
}

// Rows of three sequences at positions in no order.
std::vector<BatchRow> mixed_rows() { return {{2, 5}, {0, 63}, {1, 64}, {0, 0}, {2, 127}, {1, 1}, {2, 6}}; }

Status stored_values(KvFixture& kv, Fill fill) {
  const std::vector<BatchRow> rows = mixed_rows();
  MINFER_TRY(kv.store(rows, fill));
  return kv.check_v(rows);
}

Status sequences(KvFixture& kv) {
  for (const int32_t seq : {0, 1, 2}) MINFER_TRY(kv.store(consecutive_rows(seq, 0, 70 + static_cast<uint32_t>(seq) * 20)));
  return kv.store_and_attend({{1, 90}, {0, 70}, {2, 110}, {-1, 0}, {1, 91}}, kHeads);
}

Status padding(KvFixture& kv) {
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 20)));
  MINFER_ASSIGN(const Regions before, read_regions(kv));
  MINFER_TRY(kv.store({{-1, 0}, {-1, 5}, {-1, 0}}));
  MINFER_TRY(check_unchanged(kv, before, "rows of padding"));
  return kv.store_and_attend({{0, 20}, {-1, 0}, {0, 21}, {-1, 3}}, kHeads);
}

Status rollback(KvFixture& kv) {
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 100)));
  MINFER_TRY(kv.store_and_attend(consecutive_rows(0, 40, 21), kHeads));
  return kv.store_and_attend(consecutive_rows(0, 61, 1), kHeads);
}

// Rows of the last layer that are wanted come with inputs of their own.
Status output_rows(KvFixture& kv) {
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 30)));
  const std::vector<BatchRow> rows = consecutive_rows(0, 30, 6);
  const std::vector<float> k = kv.random_rows(6), v = kv.random_rows(6);
  const std::vector<float> q = random_floats(kHeads * kHeadDim, 2, Fill::kGauss, kv.context().random);
  Problem problem = kv.problem(rows, &k, &v, nullptr, kHeads, 0);
  OpAttrs attrs = problem.graph().nodes[0].attrs;
  const ValueId table = problem.graph().nodes[0].inputs[4];
  const ValueId source = problem.source(Shape{kHeads * kHeadDim, 2}, q);
  problem.node(Op::kAttention,
               {source, problem.input(InputKind::kOutPositions, {32, 35}), problem.input(InputKind::kOutRowSeq, {0, 0}), table}, attrs,
               KvFixture::kLayer);
  return kv.run(problem, attention_limits(kv.layout().format));
}

// The order of rows in a batch changes no bit, neither of what is stored nor of what is computed.
Status batch_order(KvFixture& kv) {
  const std::vector<BatchRow> rows = mixed_rows();
  for (const int32_t seq : {0, 1, 2}) MINFER_TRY(kv.store(consecutive_rows(seq, 0, 128)));
  const uint64_t width = kv.width(), q_width = kHeads * kHeadDim;
  const std::vector<float> k = kv.random_rows(rows.size()), v = kv.random_rows(rows.size());
  const std::vector<float> q = random_floats(q_width, rows.size(), Fill::kGauss, kv.context().random);
  MINFER_TRY(kv.store(rows, k, v));
  MINFER_ASSIGN(const Regions stored, read_regions(kv));
  MINFER_ASSIGN(const std::vector<float> first, kv.attention(rows, q, kHeads));

  std::vector<BatchRow> rows2;
  std::vector<float> k2, v2, q2, first2;
  for (const uint32_t i : kv.context().random.permutation(static_cast<uint32_t>(rows.size()))) {
    rows2.push_back(rows[i]);
    const auto append = [i](std::vector<float>& to, const std::vector<float>& from, uint64_t n) {
      to.insert(to.end(), from.begin() + static_cast<ptrdiff_t>(i * n), from.begin() + static_cast<ptrdiff_t>((i + 1) * n));
    };
    append(k2, k, width);
    append(v2, v, width);
    append(q2, q, q_width);
    append(first2, first, q_width);
  }
  MINFER_TRY(kv.store(rows2, k2, v2));
  MINFER_TRY(check_unchanged(kv, stored, "the same rows in another order"));
  MINFER_ASSIGN(const std::vector<float> second, kv.attention(rows2, q2, kHeads));
  return judge_same(second, first2, q_width, "attention of the same rows in another order");
}

// ---- copies ----

Status copy(KvFixture& kv, const std::vector<KvRowCopy>& copies) {
  const Status status = kv.context().device.kv_copy_rows(kv.layer(), copies);
  if (!status.ok()) return internal_error("kv_copy_rows: {}", status.error().text);
  for (const KvRowCopy& one : copies) kv.reference().copy(one);
  return {};
}

// A block seen through another table entry: not a bit may differ.
Status copy_block(KvFixture& kv) {
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 128)));
  const std::vector<BatchRow> rows = consecutive_rows(0, 120, 8);
  const std::vector<float> q = random_floats(kHeads * kHeadDim, 8, Fill::kGauss, kv.context().random);
  MINFER_ASSIGN(const std::vector<float> before, kv.attention(rows, q, kHeads));
  const uint32_t target = kv.block(1, 0);
  MINFER_TRY(copy(kv, {{kv.block(0, 0), 0, target, 0, 64}}));
  kv.table()[0] = static_cast<int32_t>(target);
  MINFER_ASSIGN(const std::vector<float> after, kv.attention(rows, q, kHeads));
  return judge_same(after, before, kHeads * kHeadDim, "attention after a block was copied");
}

// Rows slide over each other, within a block and across; later ranges read what earlier ones wrote.
Status copy_rows(KvFixture& kv) {
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 128)));
  const uint32_t a = kv.block(0, 0), b = kv.block(0, 64);
  MINFER_TRY(copy(kv, {{a, 5, a, 2, 59}, {b, 0, a, 61, 3}, {b, 3, b, 0, 61}, {a, 7, b, 20, 1}, {b, 20, b, 21, 1}}));
  MINFER_TRY(kv.check_v(consecutive_rows(0, 0, 125)));
  return kv.attend({{0, 124}, {0, 60}, {0, 63}, {0, 86}}, kHeads);
}

Status copy_refused(KvFixture& kv) {
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 64)));
  MINFER_ASSIGN(const Regions before, read_regions(kv));
  const uint32_t a = kv.block(0, 0), beyond = kv.layout().n_blocks;
  const KvRowCopy good{a, 0, a, 32, 8};
  for (const KvRowCopy& bad :
       {KvRowCopy{a, 60, a, 0, 5}, {a, 0, a, 60, 5}, {beyond, 0, a, 0, 1}, {a, 0, beyond, 0, 1}, {a, 0, a, 0, 0xffffffffu}}) {
    const KvRowCopy copies[] = {good, bad};
    Status status = kv.context().device.kv_copy_rows(kv.layer(), copies);
    if (status.ok()) status = kv.context().device.sync();
    if (status.ok()) return invalid("kv_copy_rows accepts rows outside a block or the region");
    MINFER_TRY(check_unchanged(kv, before, "a copy that was refused"));
  }
  return kv.attend({{0, 63}}, kHeads);
}

// ---- rotation ----

struct Turn {
  RopeKind kind;
  int32_t delta;
  bool factors;
};

// The factors are a weight: what holds them must have been imported.
Status rotate(KvFixture& kv, const Turn& turn) {
  Context& context = kv.context();
  KvRotation rotation;
  rotation.rope.n_head = kHeads;
  rotation.rope.n_head_kv = kKvHeads;
  rotation.rope.head_dim = kHeadDim;
  rotation.rope.rope_kind = turn.kind;
  rotation.rope.rope_freq_base = 10000;
  rotation.rope.rope_freq_scale = turn.factors ? 0.5f : 1;
  rotation.delta = turn.delta;
  std::unique_ptr<WeightSet> weights;
  std::vector<float> factors;
  for (uint32_t i = 0; i < kHeadDim / 2; ++i) factors.push_back(static_cast<float>(context.random.uniform(0.5, 4)));
  const Tensor tensor = vector_tensor(factors);
  if (turn.factors) {
    rotation.freq_factors = 0;
    const WeightInfo info{"factors", DType::kF32, tensor.shape, kRoleVector, 0};
    const WeightSource source{0, &info, tensor.bytes};
    auto imported = context.device.import_weights({&source, 1}, {});
    if (!imported.ok()) return internal_error("weights_import: {}", imported.error().text);
    weights = std::move(*imported);
  }
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 128)));
  MINFER_ASSIGN(const Regions before, read_regions(kv));
  const std::vector<KvRows> ranges = {{kv.block(0, 0), 10, 54}, {kv.block(0, 64), 0, 33}};
  const auto turn_keys = [&](std::span<const KvRows> rows, bool check_only) {
    Status status = context.device.kv_rotate(kv.layer(), rotation, weights.get(), rows, check_only);
    if (status.ok()) status = context.device.sync();
    return status;
  };
  if (const Status status = turn_keys(ranges, true); !status.ok()) {
    if (status.error().code == ErrorCode::kUnsupported) return unsupported("not supported");
    return internal_error("kv_rotate: {}", status.error().text);
  }
  MINFER_TRY(check_unchanged(kv, before, "a rotation that was only checked"));
  const std::vector<KvRows> outside = {{kv.block(0, 0), 0, 4}, {kv.layout().n_blocks, 0, 1}};
  if (turn_keys(outside, false).ok()) return invalid("kv_rotate accepts rows outside the region");
  MINFER_TRY(check_unchanged(kv, before, "a rotation that was refused"));
  if (const Status status = turn_keys(ranges, false); !status.ok()) return internal_error("kv_rotate: {}", status.error().text);
  kv.reference().rotate(rotation, turn.factors ? &tensor.values : nullptr, ranges);
  MINFER_TRY(kv.check_v(consecutive_rows(0, 0, 128)));
  return kv.attend({{0, 5}, {0, 60}, {0, 127}, {0, 96}}, kHeads);
}

// ---- canonical rows ----

// Values of canonical rows, by the definition of the format.
std::vector<float> decode_rows(const KvLayout& layout, std::span<const std::byte> bytes, uint64_t n) {
  const uint32_t dtype = layout.format == KvFormat::kF32 ? MI_TYPE_F32 : layout.format == KvFormat::kF16 ? MI_TYPE_F16 : MI_TYPE_Q8_0;
  const std::vector<double> values = decode(dtype, bytes, n);
  return {values.begin(), values.end()};
}

RowValues reference_rows(KvFixture& kv, std::span<const KvRows> ranges, bool of_k) {
  RowValues out;
  out.width = kv.width();
  for (const KvRows& range : ranges)
    for (uint32_t i = 0; i < range.n_rows; ++i) {
      const uint64_t cell = uint64_t{range.block} * kKvBlockPositions + range.first_row + i;
      const float* row = of_k ? kv.reference().k(cell) : kv.reference().v(cell);
      out.x.insert(out.x.end(), row, row + out.width);
      double energy = 0;
      for (uint64_t e = 0; e < out.width; ++e) energy += static_cast<double>(row[e]) * row[e];
      out.energy.push_back(energy);
      out.defined.push_back(true);
    }
  return out;
}

// What was stored comes out as the reference holds it; put elsewhere it comes out again bit for bit, and is seen by attention.
Status export_import(KvFixture& kv) {
  Device& device = kv.context().device;
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 128)));
  MINFER_TRY(kv.store(consecutive_rows(1, 0, 128)));
  const std::vector<KvRows> from = {{kv.block(0, 64), 1, 31}, {kv.block(0, 0), 0, 64}, {kv.block(0, 64), 63, 1}};
  const std::vector<KvRows> to = {{kv.block(1, 64), 1, 31}, {kv.block(1, 0), 0, 64}, {kv.block(1, 64), 63, 1}};
  constexpr uint64_t kRows = 96;
  const uint64_t row_bytes = kv_row_bytes(kv.layout());
  std::vector<std::byte> k(kRows * row_bytes), v(k.size()), k2(k.size()), v2(k.size());
  if (const Status status = device.kv_export(kv.layer(), from, k.data(), v.data()); !status.ok()) {
    if (status.error().code == ErrorCode::kUnsupported) return unsupported("not supported");
    return internal_error("kv_export: {}", status.error().text);
  }
  const Limits exact = kv.layout().format == KvFormat::kQ8_0 ? limits(1e-6) : kSameBits;
  MINFER_TRY(judge(decode_rows(kv.layout(), k, kRows * kv.width()), reference_rows(kv, from, true), exact, "exported keys"));
  MINFER_TRY(judge(decode_rows(kv.layout(), v, kRows * kv.width()), reference_rows(kv, from, false), exact, "exported values"));

  MINFER_ASSIGN(const Regions before, read_regions(kv));
  const std::vector<KvRows> outside = {to[0], {kv.block(1, 0), 60, 65}};
  Status refused = device.kv_import(kv.layer(), outside, k.data(), v.data());
  if (refused.ok()) return invalid("kv_import accepts rows outside a block");
  MINFER_TRY(check_unchanged(kv, before, "an import that was refused"));

  if (const Status status = device.kv_import(kv.layer(), to, k.data(), v.data()); !status.ok())
    return internal_error("kv_import: {}", status.error().text);
  if (const Status status = device.kv_export(kv.layer(), to, k2.data(), v2.data()); !status.ok())
    return internal_error("kv_export: {}", status.error().text);
  if (k2 != k || v2 != v) return invalid("imported {} are not exported with the same bits", k2 != k ? "keys" : "values");
  for (size_t i = 0; i < from.size(); ++i)
    kv.reference().copy({from[i].block, from[i].first_row, to[i].block, to[i].first_row, from[i].n_rows});
  return kv.attend({{1, 20}, {1, 63}, {1, 95}, {1, 127}}, kHeads);
}

// ---- what must be refused ----

// Runs rows whose positions, sequences or table are wrong: an error of the argument, and the device works on.
Status refused(KvFixture& kv, const std::vector<BatchRow>& rows, bool without_block, bool attention) {
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 64)));
  const std::vector<float> k = kv.random_rows(rows.size());
  const std::vector<float> q = random_floats(kHeads * kHeadDim, rows.size(), Fill::kGauss, kv.context().random);
  const int32_t block = kv.table()[1];
  if (without_block) kv.table()[1] = -1;
  const Problem problem = kv.problem(rows, attention ? nullptr : &k, attention ? nullptr : &k, attention ? &q : nullptr, kHeads, 0);
  kv.table()[1] = block;
  Trial trial(kv.context().device, problem, &kv.device_kvs());
  MINFER_TRY(trial.prepare());
  Status status;
  MINFER_TRY(trial.run(&status));
  if (status.ok()) return invalid("accepted");
  if (status.error().code != ErrorCode::kInvalidArgument) return invalid("refused with the wrong code: {}", status.error().text);
  return kv.store_and_attend(consecutive_rows(0, 64, 1), kHeads);
}

// A key or value that the format cannot hold: the run fails, or what attends to it is not finite. Never a number.
Status not_finite(KvFixture& kv, float bad, bool in_k) {
  MINFER_TRY(kv.store(consecutive_rows(0, 0, 10)));
  std::vector<float> k = kv.random_rows(3), v = kv.random_rows(3);
  (in_k ? k : v)[kv.width() + 7] = bad;  // row 1, head 0
  const std::vector<float> q(3 * kHeads * kHeadDim, 1.0f);
  const Problem problem = kv.problem(consecutive_rows(0, 10, 3), &k, &v, &q, kHeads, 0);
  {
    Trial trial(kv.context().device, problem, &kv.device_kvs());
    MINFER_TRY(trial.prepare());
    Status status;
    MINFER_TRY(trial.run(&status));
    if (status.ok())
      for (const uint32_t row : {1, 2})
        if (const float x = trial.output(problem.graph().nodes[1].outputs[0])[row * kHeads * kHeadDim + 7]; std::isfinite(x))
          return invalid("attention over a {} of {:g}, row {}, element 7: got {:g}, want an error or no finite value",
                         in_k ? "key" : "value", bad, row, x);
  }
  return kv.store_and_attend(consecutive_rows(0, 10, 3), kHeads);
}

}  // namespace

void add_kv_cases(std::vector<Case>& cases) {
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
    const auto add = [&](const std::string& name, const std::function<Status(KvFixture&)>& body) {
      cases.push_back({text("kv/{}/{}", kv_format_name(format), name), false, [format, body](Context& context) -> Status {
                         KvFixture kv(context, {format, kKvHeads, kHeadDim, 0}, 128, 3);
                         MINFER_TRY(kv.make(kHeads));
                         MINFER_TRY(kv.make(kHeads, 1));  // check_v looks through a window
                         return body(kv);
                       }});
    };
    for (const Fill fill : kFills)
      if (fill != Fill::kTiny && fill != Fill::kMax)
        add(text("stored/{}", fill_name(fill)), [fill](KvFixture& kv) { return stored_values(kv, fill); });
    add("sequences", sequences);
    add("padding", padding);
    add("rollback", rollback);
    add("output_rows", output_rows);
    add("batch_order", batch_order);
    add("copy_block", copy_block);
    add("copy_rows", copy_rows);
    add("copy_refused", copy_refused);
    add("export_import", export_import);
    for (const RopeKind kind : {RopeKind::kSplitHalves, RopeKind::kInterleaved})
      for (const Turn& turn : {Turn{kind, -37, false}, {kind, 21, false}, {kind, -64, true}})
        add(text("rotate/{}_{}{}", kind == RopeKind::kSplitHalves ? "split" : "interleaved", turn.delta, turn.factors ? "_factors" : ""),
            [turn](KvFixture& kv) { return rotate(kv, turn); });
    for (const bool attention : {false, true}) {
      const char* const what = attention ? "attend" : "store";
      add(text("refused/{}_position_beyond", what), [=](KvFixture& kv) { return refused(kv, {{0, 64}, {0, 128}}, false, attention); });
      add(text("refused/{}_position_negative", what), [=](KvFixture& kv) { return refused(kv, {{0, -1}}, false, attention); });
      add(text("refused/{}_without_block", what), [=](KvFixture& kv) { return refused(kv, {{0, 64}}, true, attention); });
      add(text("refused/{}_sequence_beyond", what), [=](KvFixture& kv) { return refused(kv, {{3, 0}}, false, attention); });
    }
    for (const bool in_k : {true, false}) {
      const char* const what = in_k ? "key" : "value";
      add(text("not_finite/{}_nan", what), [=](KvFixture& kv) { return not_finite(kv, std::numeric_limits<float>::quiet_NaN(), in_k); });
      add(text("not_finite/{}_inf", what), [=](KvFixture& kv) { return not_finite(kv, std::numeric_limits<float>::infinity(), in_k); });
      if (format == KvFormat::kF16) add(text("not_finite/{}_beyond", what), [=](KvFixture& kv) { return not_finite(kv, 70000, in_k); });
    }
  }
}

}  // namespace minfer::conformance
