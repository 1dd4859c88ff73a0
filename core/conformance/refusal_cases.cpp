// What no backend knows must be answered with no, and values that are not finite must stay visible.
#include <limits>

#include "conformance/kv_fixture.hpp"
#include "engine/graph/graph_builder.hpp"

namespace minfer::conformance {
namespace {

// ---- what `supports` must deny ----

Status must_deny(Context& context, const Problem& problem) {
  Trial trial(context.device, problem);
  MINFER_ASSIGN(const bool yes, trial.supported());
  return yes ? Status(invalid("supports says yes")) : Status();
}

OpAttrs head_attrs(uint32_t n_head, uint32_t head_dim) {
  OpAttrs attrs;
  attrs.n_head = n_head;
  attrs.n_head_kv = n_head;
  attrs.head_dim = head_dim;
  attrs.rope_freq_base = 10000;
  attrs.rope_freq_scale = 1;
  attrs.attn_scale = 0.125f;
  return attrs;
}

Problem unknown_op(Random&) {
  Problem p;
  const ValueId x = p.source(Shape{64, 2}, std::vector<float>(128));
  p.unchecked_node(static_cast<Op>(31), {x}, {}, Shape{64, 2});
  return p;
}

// type 31 was a packing of an early format that files no longer use.
Problem unknown_weight_type(Op op, Random&) {
  Problem p;
  Tensor tensor{31, Shape{64, 8}, kRoleMatrix, std::vector<std::byte>(64 * 8), {}};
  if (op == Op::kGetRows) {
    tensor.roles = kRoleEmbedding;
    const ValueId table = p.weight(std::move(tensor));
    p.node(Op::kGetRows, {table, p.input(InputKind::kTokenIds, {0, 1})});
  } else {
    const ValueId x = p.source(Shape{64, 2}, std::vector<float>(128));
    p.node(Op::kMatMul, {x, p.weight(std::move(tensor))});
  }
  return p;
}

Problem broken_block(uint32_t dtype, Random&) {
  Problem p;
  const uint64_t width = sdk::find_dtype(dtype)->block_elements * 2 + sdk::find_dtype(dtype)->block_elements / 2;
  const ValueId x = p.source(Shape{width, 2}, std::vector<float>(width * 2));
  p.node(Op::kMatMul, {x, p.weight({dtype, Shape{width, 8}, kRoleMatrix, std::vector<std::byte>(width * 8 * 2), {}})});
  return p;
}

Problem unknown_rope(Random&) {
  Problem p;
  OpAttrs attrs = head_attrs(1, 64);
  attrs.rope_kind = static_cast<RopeKind>(7);
  const ValueId x = p.source(Shape{64, 2}, std::vector<float>(128));
  p.node(Op::kRope, {x, p.input(InputKind::kPositions, {0, 1})}, attrs);
  return p;
}

Problem unknown_kv_format(Random&) {
  Problem p;
  p.kv(0, {static_cast<KvFormat>(MI_TYPE_Q4_1), 1, 64, 2});
  const ValueId k = p.source(Shape{64, 1}, std::vector<float>(64));
  p.node(Op::kKvStore,
         {k, k, p.input(InputKind::kPositions, {0}), p.input(InputKind::kRowSeq, {0}), p.input(InputKind::kBlockTable, Shape{1, 1}, {0})},
         head_attrs(1, 64));
  return p;
}

// ---- values that are not finite ----

enum class Bad { kNan, kInf };

// The run fails, or the result is what arithmetic makes of the value: every place right, the other rows untouched.
Status not_finite(Context& context, Bad bad, const std::function<void(Problem&, ValueId, Random&)>& add_node,
                  Contract contract = Contract::kFloat) {
  constexpr uint64_t kWidth = 256, kRows = 3;
  std::vector<float> data = random_floats(kWidth, kRows, Fill::kGauss, context.random);
  const std::vector<float> good = data;
  data[kWidth + 77] = bad == Bad::kNan ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  Problem problem;
  const ValueId x = problem.source(Shape{kWidth, kRows}, data);
  add_node(problem, x, context.random);
  Trial trial(context.device, problem);
  MINFER_TRY(trial.prepare());
  Status status;
  MINFER_TRY(trial.run(&status));
  ReferenceKvs none;
  const Limits loose = limits(1e-4);
  if (status.ok()) {
    const std::vector<RowValues> want = evaluate(problem, contract, none);
    const Node& node = problem.graph().nodes.back();
    RowValues row_wise = want[node.outputs[0]];
    // Of a product only that no number comes out: which of NaN and infinity depends on the order of additions.
    if (node.op == Op::kMatMul) {
      for (uint64_t i = 0; i < row_wise.width; ++i)
        if (const float y = trial.output(node.outputs[0])[row_wise.width + i]; std::isfinite(y))
          return invalid("matmul, row 1, element {}: got {:g}, want an error or no finite value", i, y);
      row_wise.defined[1] = false;
    }
    MINFER_TRY(judge(trial.output(node.outputs[0]), row_wise, loose, op_info(node.op).name));
  } else if (status.error().code != ErrorCode::kInvalidArgument) {
    return invalid("refused with the wrong code: {}", status.error().text);
  }
  problem.set(x, good);
  MINFER_TRY(trial.run());
  return judge_outputs(trial, problem, evaluate(problem, Contract::kFloat, none), loose);
}

}  // namespace

void add_refusal_cases(std::vector<Case>& cases) {
  const auto deny = [&](const std::string& name, const std::function<Problem(Random&)>& make) {
    cases.push_back({"deny/" + name, false, [make](Context& context) { return must_deny(context, make(context.random)); }});
  };
  deny("operation_31", unknown_op);
  deny("rope_kind_7", unknown_rope);
  deny("kv_format_q4_1", unknown_kv_format);
  deny("matmul_type_31", [](Random& random) { return unknown_weight_type(Op::kMatMul, random); });
  deny("get_rows_type_31", [](Random& random) { return unknown_weight_type(Op::kGetRows, random); });
  for (const uint32_t dtype : weight_types())
    if (is_quantised(dtype)) deny("broken_block_" + type_name(dtype), [dtype](Random& random) { return broken_block(dtype, random); });

  for (const Bad bad : {Bad::kNan, Bad::kInf}) {
    const auto add = [&](const std::string& name, const std::function<void(Problem&, ValueId, Random&)>& node) {
      cases.push_back({text("not_finite/{}/{}", bad == Bad::kNan ? "nan" : "inf", name), false,
                       [bad, node](Context& context) { return not_finite(context, bad, node); }});
    };
    for (const uint32_t dtype : weight_types())
      add("matmul_" + type_name(dtype), [dtype](Problem& p, ValueId x, Random& random) {
        p.node(Op::kMatMul, {x, p.weight(random_matrix(dtype, 256, 20, Fill::kGauss, random))});
      });
    add("rms_norm", [](Problem& p, ValueId x, Random& random) {
      OpAttrs attrs;
      attrs.eps = 1e-6f;
      p.node(Op::kRmsNorm, {x, p.weight(vector_tensor(random_floats(256, 1, Fill::kUniform, random)))}, attrs);
    });
    add("rope", [](Problem& p, ValueId x, Random&) {
      p.node(Op::kRope, {x, p.input(InputKind::kPositions, {0, 3, 9})}, head_attrs(4, 64));
    });
    add("silu", [](Problem& p, ValueId x, Random&) { p.node(Op::kSilu, {x}); });
    for (const Op op : {Op::kAdd, Op::kMul, Op::kSiluMul})
      add(std::string(op_info(op).name), [op](Problem& p, ValueId x, Random& random) {
        p.node(op, {x, p.source(Shape{256, 3}, random_floats(256, 3, Fill::kUniform, random))});
      });
  }
}

}  // namespace minfer::conformance
