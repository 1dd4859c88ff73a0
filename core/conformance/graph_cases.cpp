// Whole graphs: fused nodes against their chains, plans that run again and again, plans side by side, batches against single rows, devices
// side by side.
#include <thread>

#include "conformance/small_model.hpp"
#include "engine/graph/graph_builder.hpp"

namespace minfer::conformance {
namespace {

using Batch = SmallModel::Batch;

// Two layers of float weights and f32 KV: rounding adds up, nothing is quantised.
constexpr Limits kFloatModel{1e-7, 3e-3};
// Two computations of the same chain that round differently somewhere in between. Quantised activations turn that into steps of 1/127.
Limits chain_limits(const SmallModelForm& form) {
  if (is_quantised(form.dtype)) return limits(1e-3);
  return form.kv_format == KvFormat::kF32 ? kFloatModel : limits(1e-4);
}

RowValues as_reference(std::span<const float> x, uint64_t width) {
  RowValues out;
  out.width = width;
  out.x.assign(x.begin(), x.end());
  out.energy.assign(x.size() / width, 0);
  out.defined.assign(x.size() / width, true);
  for (size_t i = 0; i < x.size(); ++i) out.energy[i / width] += out.x[i] * out.x[i];
  return out;
}

// Same bits under --strict, and otherwise within what rounding differently may cost.
Status judge_chain(Context& context, std::span<const float> got, std::span<const float> want, uint64_t width, const SmallModelForm& form,
                   std::string_view what) {
  if (context.options.strict) return judge_same(got, want, width, what);
  return judge(got, as_reference(want, width), chain_limits(form), what);
}

std::vector<float> copy_of(std::span<const float> x) { return {x.begin(), x.end()}; }

// One session: a device's KV, and runs one after another.
struct Session {
  Context& context;
  SmallModel& model;
  DeviceKvs kvs = {};

  Status make(const Problem& sample) {
    MINFER_TRY(SmallModel::check_supported(context.device, sample));
    MINFER_ASSIGN(kvs, model.device_kvs(context.device));
    return {};
  }
  Result<std::vector<float>> logits(const Batch& batch, const SmallModel::Shape& shape) {
    const Problem problem = model.problem(batch, shape);
    Trial trial(context.device, problem, &kvs);
    MINFER_TRY(trial.prepare());
    MINFER_TRY(trial.run());
    return copy_of(trial.output(SmallModel::logits(problem)));
  }
};

// A fused graph, an unfused one and one whose every value is kept: the same logits, over a prefill and a decode step each.
Status fused(Context& context, const SmallModelForm& form) {
  SmallModel model(form, context.random);
  const Batch prefill = model.batch(context.random, 9, 1, 0), decode = model.batch(context.random, 1, 1, 9);
  std::vector<std::vector<float>> all[3];
  const SmallModel::Shape shapes[] = {{false, false}, {true, false}, {false, true}};
  for (int i = 0; i < 3; ++i) {
    Session session{context, model};
    MINFER_TRY(session.make(model.problem(prefill, shapes[i])));
    for (const Batch* batch : {&prefill, &decode}) {
      MINFER_ASSIGN(std::vector<float> logits, session.logits(*batch, shapes[i]));
      all[i].push_back(std::move(logits));
    }
  }
  for (const int i : {1, 2})
    for (const int step : {0, 1})
      MINFER_TRY(judge_chain(context, all[i][static_cast<size_t>(step)], all[0][static_cast<size_t>(step)], SmallModel::kVocab, form,
                             text("{} of the {} graph", step ? "decode" : "prefill", i == 1 ? "fused" : "observed")));
  return {};
}

// One plan, 50 steps of decoding: tokens and positions are data. Judged against the reference each time.
Status replay(Context& context, const SmallModelForm& form, bool fused) {
  SmallModel model(form, context.random);
  Problem problem = model.problem(model.batch(context.random, 1, 0, 0), {fused, false});
  Session session{context, model};
  MINFER_TRY(session.make(problem));
  ReferenceKvs reference = model.reference_kvs();
  Trial trial(context.device, problem, &session.kvs);
  MINFER_TRY(trial.prepare());
  for (uint32_t step = 0; step < 100; ++step) {  // two sequences in turn, 50 steps each
    SmallModel::set_batch(problem, model.batch(context.random, 1, static_cast<int32_t>(step % 2), 40 + step / 2));
    if (step < 2) {  // what comes before
      const Batch before = model.batch(context.random, 40, static_cast<int32_t>(step), 0);
      MINFER_TRY(session.logits(before, {fused, false}).status());
      (void)evaluate(model.problem(before, {fused, false}), Contract::kFloat, reference);
    }
    MINFER_TRY(trial.run());
    const std::vector<RowValues> want = evaluate(problem, Contract::kFloat, reference);
    MINFER_TRY(judge(trial.output(SmallModel::logits(problem)), want[SmallModel::logits(problem)], kFloatModel, text("step {}", step)));
  }
  return {};
}

// Every value of every node against the reference.
Status observed(Context& context, const SmallModelForm& form, uint32_t rows) {
  SmallModel model(form, context.random);
  const Problem problem = model.problem(model.batch(context.random, rows, 0, 0), {false, true});
  Session session{context, model};
  MINFER_TRY(session.make(problem));
  ReferenceKvs reference = model.reference_kvs();
  Trial trial(context.device, problem, &session.kvs);
  MINFER_TRY(trial.prepare());
  MINFER_TRY(trial.run());
  return judge_outputs(trial, problem, evaluate(problem, Contract::kFloat, reference), kFloatModel);
}

// Plans of different sizes over one KV, in turn.
Status two_plans(Context& context, const SmallModelForm& form) {
  SmallModel model(form, context.random);
  Problem wide = model.problem(model.batch(context.random, 5, 0, 0), {}), narrow = model.problem(model.batch(context.random, 1, 0, 0), {});
  Session session{context, model};
  MINFER_TRY(session.make(wide));
  ReferenceKvs reference = model.reference_kvs();
  Trial wide_trial(context.device, wide, &session.kvs), narrow_trial(context.device, narrow, &session.kvs);
  MINFER_TRY(wide_trial.prepare());
  MINFER_TRY(narrow_trial.prepare());
  uint32_t position = 0;
  for (const bool is_wide : {true, false, false, true, true, false, true, false}) {
    Problem& problem = is_wide ? wide : narrow;
    Trial& trial = is_wide ? wide_trial : narrow_trial;
    const uint32_t rows = is_wide ? 5 : 1;
    SmallModel::set_batch(problem, model.batch(context.random, rows, 0, position));
    MINFER_TRY(trial.run());
    const std::vector<RowValues> want = evaluate(problem, Contract::kFloat, reference);
    MINFER_TRY(judge(trial.output(SmallModel::logits(problem)), want[SmallModel::logits(problem)], kFloatModel,
                     text("{} rows at position {}", rows, position)));
    position += rows;
  }
  return {};
}

// The scratch memory moves: a new plan of a new generation gives the same bits. So does a second run.
Status moved(Context& context, const SmallModelForm& form) {
  SmallModel model(form, context.random);
  const Problem problem = model.problem(model.batch(context.random, 4, 0, 0), {});
  Session session{context, model};
  MINFER_TRY(session.make(problem));
  Trial trial(context.device, problem, &session.kvs);
  MINFER_TRY(trial.prepare());
  MINFER_TRY(trial.run());
  const std::vector<float> first = copy_of(trial.output(SmallModel::logits(problem)));
  MINFER_TRY(trial.run());
  MINFER_TRY(judge_same(trial.output(SmallModel::logits(problem)), first, SmallModel::kVocab, "the second run"));
  MINFER_TRY(trial.move());
  MINFER_TRY(trial.run());
  return judge_same(trial.output(SmallModel::logits(problem)), first, SmallModel::kVocab, "the run at another place");
}

// A token alone, or in a batch with others.
Status batch_and_single(Context& context, const SmallModelForm& form) {
  SmallModel model(form, context.random);
  const Batch batch = model.batch(context.random, 7, 0, 0);
  Session together{context, model}, alone{context, model};
  MINFER_TRY(together.make(model.problem(batch, {})));
  MINFER_TRY(alone.make(model.problem(batch, {})));
  MINFER_ASSIGN(const std::vector<float> want, together.logits(batch, {}));
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    MINFER_ASSIGN(const std::vector<float> got, alone.logits({{batch.tokens[i]}, {batch.rows[i]}}, {}));
    MINFER_TRY(judge_chain(context, got, std::span(want).subspan(i * SmallModel::kVocab, SmallModel::kVocab), SmallModel::kVocab, form,
                           text("token {} alone", i)));
  }
  return {};
}

// The rows of a product in another order: the same bits for each.
Status product_order(Context& context, uint32_t dtype) {
  constexpr uint64_t kWidth = 512, kOut = 40, kRows = 11;
  const std::vector<float> x = random_floats(kWidth, kRows, Fill::kGauss, context.random);
  const std::vector<uint32_t> order = context.random.permutation(kRows);
  std::vector<float> x2;
  for (const uint32_t i : order)
    x2.insert(x2.end(), x.begin() + static_cast<ptrdiff_t>(i * kWidth), x.begin() + static_cast<ptrdiff_t>((i + 1) * kWidth));
  Problem problem;
  const ValueId source = problem.source(Shape{kWidth, kRows}, x);
  const ValueId out = problem.node(Op::kMatMul, {source, problem.weight(random_matrix(dtype, kWidth, kOut, Fill::kGauss, context.random))});
  Trial trial(context.device, problem);
  MINFER_TRY(trial.prepare());
  MINFER_TRY(trial.run());
  const std::vector<float> first = copy_of(trial.output(out));
  problem.set(source, x2);
  MINFER_TRY(trial.run());
  for (uint64_t r = 0; r < kRows; ++r)
    MINFER_TRY(judge_same(trial.output(out).subspan(r * kOut, kOut), std::span(first).subspan(order[r] * kOut, kOut), kOut,
                          text("row {} moved to {}", order[r], r)));
  return {};
}

// Two devices that work at the same time give the bits that one gives alone.
Status two_devices(Context& context, const SmallModelForm& form) {
  SmallModel model(form, context.random);
  const Problem problem = model.problem(model.batch(context.random, 6, 0, 0), {});
  MINFER_TRY(SmallModel::check_supported(context.device, problem));
  MINFER_ASSIGN(Device* const second, context.second_device());
  std::vector<float> results[2];
  Status statuses[2];
  const auto work = [&](Device& device, int i) -> Status {
    MINFER_ASSIGN(const DeviceKvs kvs, model.device_kvs(device));
    Trial trial(device, problem, &kvs);
    MINFER_TRY(trial.prepare());
    for (int run = 0; run < 20; ++run) {
      MINFER_TRY(trial.run());
      const std::span<const float> logits = trial.output(SmallModel::logits(problem));
      if (run == 0) results[i] = copy_of(logits);
      MINFER_TRY(judge_same(logits, results[i], SmallModel::kVocab, text("device {}, run {}", i, run)));
    }
    return {};
  };
  std::thread other([&] { statuses[1] = work(*second, 1); });
  statuses[0] = work(context.device, 0);
  other.join();
  for (const Status& status : statuses) MINFER_TRY(status);
  return judge_same(results[1], results[0], SmallModel::kVocab, "the second device");
}

// A run that is told to stop fails as cancelled, or is done before it hears of it; the next one is right.
Status cancelled(Context& context, const SmallModelForm& form) {
  SmallModel model(form, context.random);
  const Problem problem = model.problem(model.batch(context.random, 3, 0, 0), {});
  Session session{context, model};
  MINFER_TRY(session.make(problem));
  Trial trial(context.device, problem, &session.kvs);
  MINFER_TRY(trial.prepare());
  const StopCheck stop = [] { return true; };
  Status status;
  MINFER_TRY(trial.run(&status, &stop));
  if (!status.ok() && status.error().code != ErrorCode::kCancelled)
    return invalid("a run that was told to stop fails otherwise: {}", status.error().text);
  ReferenceKvs reference = model.reference_kvs();
  MINFER_TRY(trial.run());
  return judge_outputs(trial, problem, evaluate(problem, Contract::kFloat, reference), kFloatModel);
}

// A value that two products and a sum read, a sum over its own input, a chain whose ends are kept: what folding nodes may get wrong.
Status in_place(Context& context, uint32_t dtype, uint64_t rows) {
  Problem p;
  const ValueId x = p.source(Shape{256, rows}, random_floats(256, rows, Fill::kGauss, context.random));
  OpAttrs attrs;
  attrs.eps = 1e-5f;
  const auto matrix = [&] { return p.weight(random_matrix(dtype, 256, 256, Fill::kGauss, context.random)); };
  const ValueId normed = p.node(Op::kRmsNorm, {x, p.weight(vector_tensor(random_floats(256, 1, Fill::kGauss, context.random)))}, attrs);
  const ValueId product = p.node(Op::kMatMul, {normed, matrix()});
  const ValueId sum = p.node(Op::kAdd, {product, x});
  p.place_over(sum, x);
  const ValueId second = p.node(Op::kMatMul, {sum, matrix()});
  const ValueId third = p.node(Op::kAdd, {sum, second});
  p.place_over(third, second);
  p.node(Op::kAdd, {third, third});
  p.keep(sum);
  Trial trial(context.device, p);
  MINFER_TRY(trial.prepare());
  MINFER_TRY(trial.run());
  ReferenceKvs none;
  Status status = judge_outputs(trial, p, evaluate(p, Contract::kFloat, none), is_quantised(dtype) ? limits(1e-6) : limits(1e-8));
  if (!status.ok() && is_quantised(dtype)) status = judge_outputs(trial, p, evaluate(p, Contract::kQ8, none), limits(1e-4));
  return status;
}

}  // namespace

void add_graph_cases(std::vector<Case>& cases) {
  const SmallModelForm plain, interleaved{MI_TYPE_F32, KvFormat::kF32, RopeKind::kInterleaved, false, true};
  const auto add = [&](const std::string& name, const std::function<Status(Context&)>& run, bool full = false) {
    cases.push_back({"graph/" + name, full, run});
  };
  for (const uint32_t dtype : weight_types())
    for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
      // The quick set goes once through the types, with the formats in turn.
      const bool quick = dtype % 3 == (format == KvFormat::kF32 ? 0u : format == KvFormat::kF16 ? 1u : 2u);
      const SmallModelForm form{dtype, format, dtype % 2 ? RopeKind::kInterleaved : RopeKind::kSplitHalves, dtype % 4 < 2, dtype % 5 == 0};
      const std::string name = type_name(dtype) + "_" + std::string(kv_format_name(format));
      add(
          "fused/" + name, [form](Context& context) { return fused(context, form); }, !quick);
      add(
          "batch_and_single/" + name, [form](Context& context) { return batch_and_single(context, form); }, !quick);
    }
  for (const uint32_t dtype : weight_types())
    add("product_order/" + type_name(dtype), [dtype](Context& c) { return product_order(c, dtype); });
  for (const uint32_t dtype : {MI_TYPE_F32, MI_TYPE_F16, MI_TYPE_Q4_0, MI_TYPE_Q8_0, MI_TYPE_Q4_K, MI_TYPE_Q6_K})
    for (const uint64_t rows : {1, 3, 9})
      add(text("in_place/{}_r{}", type_name(dtype), rows), [dtype, rows](Context& context) { return in_place(context, dtype, rows); });
  for (const bool fused : {false, true})
    add(text("replay/{}", fused ? "fused" : "unfused"), [=](Context& context) { return replay(context, plain, fused); });
  for (const SmallModelForm& form : {plain, interleaved})
    for (const uint32_t rows : {1, 6})
      add(text("observed/{}_r{}", &form == &plain || form.bias ? "split" : "interleaved", rows),
          [form, rows](Context& context) { return observed(context, form, rows); });
  add("two_plans", [=](Context& context) { return two_plans(context, plain); });
  add("moved", [=](Context& context) { return moved(context, plain); });
  add("moved_q4_0", [](Context& context) { return moved(context, {MI_TYPE_Q4_0, KvFormat::kF16, RopeKind::kSplitHalves, true, false}); });
  add("two_devices", [=](Context& context) { return two_devices(context, plain); });
  add("two_devices_q4_k", [](Context& context) {
    return two_devices(context, {MI_TYPE_Q4_K, KvFormat::kF16, RopeKind::kSplitHalves, true, false});
  });
  add("cancelled", [=](Context& context) { return cancelled(context, plain); });
}

}  // namespace minfer::conformance
