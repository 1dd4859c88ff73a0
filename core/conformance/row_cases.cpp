// Operations that work row by row or element by element: get_rows, rms_norm, rope, add, mul, silu, silu_mul.
#include "conformance/suite.hpp"
#include "engine/graph/graph_builder.hpp"

namespace minfer::conformance {
namespace {

constexpr Limits kSmooth{1e-9, 2e-4};  // norms, rotations, functions: f32 arithmetic in any order

std::string shape_name(uint64_t width, uint64_t rows) { return text("w{}_r{}", width, rows); }

// ---- get_rows ----

struct GetRows {
  uint32_t dtype;
  uint64_t width, rows;
  std::vector<int32_t> ids;
  uint32_t roles;
};

Status run_get_rows(Context& context, const GetRows& c) {
  Problem problem;
  Tensor table = random_matrix(c.dtype, c.width, c.rows, Fill::kGauss, context.random);
  table.roles = c.roles;
  const ValueId source = problem.weight(std::move(table));
  problem.node(Op::kGetRows, {source, problem.input(InputKind::kTokenIds, c.ids)}, {}, kEmbeddingLayer);
  return run_and_judge(context, problem, kSameBits);
}

Status run_select_rows(Context& context, uint64_t width, uint64_t rows, const std::vector<int32_t>& ids, bool shifted) {
  Problem problem;
  const ValueId source = problem.source(Shape{width, rows}, random_floats(width, rows, Fill::kGauss, context.random));
  const ValueId out = problem.node(Op::kGetRows, {source, problem.input(InputKind::kOutRows, ids)}, {}, kOutputLayer);
  if (shifted) {
    problem.shift(source, 1);
    problem.shift(out, 3);
  }
  return run_and_judge(context, problem, kSameBits);
}

void add_get_rows(std::vector<Case>& cases) {
  for (const uint32_t dtype : weight_types()) {
    const uint64_t block = sdk::find_dtype(dtype)->block_elements;
    const std::string name = "get_rows/" + type_name(dtype) + "/";
    const GetRows forms[] = {
        {dtype, block == 1 ? 33 : block, 5, {4, 0, 4, 2}, kRoleEmbedding},
        {dtype, block == 1 ? 896 : block * 3, 129, {128, 0, 64, 64, 127, 1, 31}, kRoleEmbedding},
    };
    for (const GetRows& c : forms)
      cases.push_back({name + shape_name(c.width, c.rows), false, [c](Context& context) { return run_get_rows(context, c); }});
    GetRows tied = forms[1];
    tied.roles = kRoleEmbedding | kRoleMatrix | kRoleOutput;
    cases.push_back(
        {name + shape_name(tied.width, tied.rows) + "/tied", false, [tied](Context& context) { return run_get_rows(context, tied); }});
  }
  for (const bool shifted : {false, true})
    cases.push_back({text("get_rows/activation/w70_r17{}", shifted ? "/shifted" : ""), false, [shifted](Context& context) {
                       return run_select_rows(context, 70, 17, {16, 0, 5, 5, 15}, shifted);
                     }});
}

// ---- rms_norm ----

void add_rms_norm(std::vector<Case>& cases) {
  struct Form {
    uint64_t width, rows;
    Fill fill;
    bool shifted, full;
  };
  std::vector<Form> forms = {
      {1, 1, Fill::kGauss, false, false},    {31, 3, Fill::kGauss, true, false},    {64, 9, Fill::kUniform, false, false},
      {896, 1, Fill::kGauss, false, false},  {896, 33, Fill::kGauss, true, false},  {4096, 4, Fill::kGauss, false, false},
      {18944, 2, Fill::kGauss, false, true}, {128, 512, Fill::kGauss, false, true}, {100, 129, Fill::kUniform, true, false}};
  for (const Fill fill : kFills) forms.push_back({576, 5, fill, false, false});
  for (const Form& f : forms)
    cases.push_back({text("rms_norm/{}/{}{}", shape_name(f.width, f.rows), fill_name(f.fill), f.shifted ? "/shifted" : ""), f.full,
                     [f](Context& context) {
                       Problem problem;
                       OpAttrs attrs;
                       attrs.eps = f.rows % 2 ? 1e-6f : 1e-5f;
                       const ValueId x = problem.source(Shape{f.width, f.rows}, random_floats(f.width, f.rows, f.fill, context.random));
                       const ValueId weight = problem.weight(vector_tensor(random_floats(f.width, 1, Fill::kGauss, context.random)));
                       const ValueId out = problem.node(Op::kRmsNorm, {x, weight}, attrs);
                       if (f.shifted) {
                         problem.shift(x, 1);
                         problem.shift(out, 7);
                       }
                       return run_and_judge(context, problem, kSmooth);
                     }});
}

// ---- rope ----

struct RopeForm {
  uint32_t head_dim, n_head;
  uint64_t rows;
  RopeKind kind = RopeKind::kSplitHalves;
  float base = 10000, scale = 1;
  bool factors = false, in_place = false, far = false;
};

Status run_rope(Context& context, const RopeForm& f) {
  Problem problem;
  problem.n_ctx = f.far ? 32768 : 4096;
  OpAttrs attrs;
  attrs.n_head = f.n_head;
  attrs.head_dim = f.head_dim;
  attrs.rope_kind = f.kind;
  attrs.rope_freq_base = f.base;
  attrs.rope_freq_scale = f.scale;
  const uint64_t width = uint64_t{f.n_head} * f.head_dim;
  std::vector<int32_t> positions(f.rows);
  for (int32_t& p : positions) p = static_cast<int32_t>(context.random.below(f.far ? 32768 : 300));
  positions.back() = static_cast<int32_t>(problem.n_ctx - 1);
  positions.front() = f.rows > 1 ? 0 : 17;
  const ValueId x = problem.source(Shape{width, f.rows}, random_floats(width, f.rows, Fill::kGauss, context.random));
  std::vector<ValueId> inputs{x, problem.input(InputKind::kPositions, positions)};
  if (f.factors) {
    std::vector<float> factors(f.head_dim / 2);
    for (float& factor : factors) factor = static_cast<float>(context.random.uniform(0.5, 8));
    inputs.push_back(problem.weight(vector_tensor(factors)));
  }
  const ValueId out = problem.node(Op::kRope, inputs, attrs);
  if (f.in_place) problem.place_over(out, x);
  return run_and_judge(context, problem, kSmooth);
}

void add_rope(std::vector<Case>& cases) {
  for (const RopeKind kind : {RopeKind::kSplitHalves, RopeKind::kInterleaved}) {
    const std::vector<RopeForm> forms = {
        {64, 14, 9, kind, 1e6f},
        {128, 2, 33, kind, 1e6f},
        {64, 1, 1, kind},
        {80, 3, 5, kind},
        {96, 4, 7, kind, 10000, 0.25f},
        {256, 1, 3, kind, 1e6f},
        {64, 9, 17, kind, 5e5f, 1, true},
        {128, 4, 6, kind, 1e6f, 1, false, true},
        {64, 2, 8, kind, 5e5f, 0.5f, true, true},
        {128, 2, 8, kind, 1e6f, 1, false, false, true},
        {2, 3, 2, kind},
    };
    for (const RopeForm& f : forms)
      cases.push_back(
          {text("rope/{}/hd{}_h{}_r{}{}{}{}{}", kind == RopeKind::kSplitHalves ? "split" : "interleaved", f.head_dim, f.n_head, f.rows,
                f.scale != 1 ? "/scaled" : "", f.factors ? "/factors" : "", f.in_place ? "/in_place" : "", f.far ? "/far" : ""),
           false, [f](Context& context) { return run_rope(context, f); }});
  }
}

// ---- elements ----

struct ElementForm {
  Op op;
  uint64_t width, rows;
  Fill fill;
  enum Place { kApart, kOverFirst, kOverSecond, kSameTwice, kShifted } place;
};

Status run_element(Context& context, const ElementForm& f) {
  Problem problem;
  const ValueId a = problem.source(Shape{f.width, f.rows}, random_floats(f.width, f.rows, f.fill, context.random));
  std::vector<ValueId> inputs{a};
  if (f.op != Op::kSilu)
    inputs.push_back(f.place == ElementForm::kSameTwice
                         ? a
                         : problem.source(Shape{f.width, f.rows}, random_floats(f.width, f.rows, Fill::kGauss, context.random)));
  const ValueId out = problem.node(f.op, inputs);
  if (f.place == ElementForm::kOverFirst) problem.place_over(out, inputs[0]);
  if (f.place == ElementForm::kOverSecond) problem.place_over(out, inputs[1]);
  if (f.place == ElementForm::kShifted) {
    problem.shift(a, 1);
    problem.shift(out, 5);
  }
  const bool exact = f.op == Op::kAdd || f.op == Op::kMul;
  return run_and_judge(context, problem, exact ? kOneUlp : kSmooth);
}

void add_elements(std::vector<Case>& cases) {
  constexpr std::string_view kPlaces[] = {"", "/over_first", "/over_second", "/same_twice", "/shifted"};
  for (const Op op : {Op::kAdd, Op::kMul, Op::kSilu, Op::kSiluMul}) {
    std::vector<ElementForm> forms = {{op, 1, 1, Fill::kGauss, ElementForm::kApart},
                                      {op, 896, 3, Fill::kGauss, ElementForm::kApart},
                                      {op, 33, 7, Fill::kGauss, ElementForm::kOverFirst},
                                      {op, 65, 17, Fill::kGauss, ElementForm::kShifted},
                                      {op, 4864, 9, Fill::kUniform, ElementForm::kApart}};
    if (op != Op::kSilu) {
      forms.push_back({op, 127, 5, Fill::kGauss, ElementForm::kOverSecond});
      forms.push_back({op, 96, 2, Fill::kGauss, ElementForm::kSameTwice});
    }
    for (const Fill fill : kFills) forms.push_back({op, 64, 4, fill, ElementForm::kApart});
    for (const ElementForm& f : forms)
      cases.push_back({text("{}/{}/{}{}", op_info(op).name, shape_name(f.width, f.rows), fill_name(f.fill), kPlaces[f.place]), false,
                       [f](Context& context) { return run_element(context, f); }});
  }
}

}  // namespace

void add_row_cases(std::vector<Case>& cases) {
  add_get_rows(cases);
  add_rms_norm(cases);
  add_rope(cases);
  add_elements(cases);
}

}  // namespace minfer::conformance
