// MATMUL with every weight type.
#include "conformance/suite.hpp"
#include "engine/graph/graph_builder.hpp"

namespace minfer::conformance {
namespace {

struct Form {
  uint32_t dtype;
  uint64_t width, n_out, rows;
  Fill fill = Fill::kGauss;
  bool bias = false;
  bool shifted = false;
  bool output = false;  // the last product of a model: role of its own
};

// The loosest that each reading may be, per row. 8-bit activations cost about 2e-5 on Gaussian data.
struct Reading {
  ProductClass found;
  Contract contract;
  Limits limits;
};
constexpr Reading kReadings[] = {
    {ProductClass::kQ8, Contract::kQ8, {1e-10, 8e-5}},
    {ProductClass::kFloat, Contract::kFloat, {1e-9, 2e-4}},
    {ProductClass::kHalf, Contract::kFloat, {1e-6, 8e-3, 8}},
    {ProductClass::kLoose, Contract::kFloat, {1e-4, 8e-2, 8}},
};

// Passes with the strictest reading that the result follows. Rounding activations to 8 bits in some other way is legitimate with
// quantised weights only.
Status judge_product(Context& context, const Trial& trial, const Problem& problem, bool quantised) {
  ReferenceKvs none;
  const std::vector<RowValues> as_float = evaluate(problem, Contract::kFloat, none);
  const std::vector<RowValues> as_q8 = quantised ? evaluate(problem, Contract::kQ8, none) : as_float;
  Status status;
  for (const Reading& reading : kReadings) {
    if (reading.found == ProductClass::kQ8 && !quantised) continue;
    if (reading.found == ProductClass::kLoose && !quantised) continue;
    status = judge_outputs(trial, problem, reading.contract == Contract::kQ8 ? as_q8 : as_float, reading.limits);
    if (status.ok()) {
      ++(*context.product_classes)[reading.found];
      return {};
    }
    if (context.options.strict && (reading.found == ProductClass::kQ8 || !quantised)) return status;
  }
  return status;
}

Status run_matmul(Context& context, const Form& f) {
  Problem problem;
  const ValueId x = problem.source(Shape{f.width, f.rows}, random_floats(f.width, f.rows, f.fill, context.random));
  Tensor matrix = random_matrix(f.dtype, f.width, f.n_out, f.fill, context.random);
  if (f.output) matrix.roles = kRoleMatrix | kRoleOutput | kRoleEmbedding;
  std::vector<ValueId> inputs{x, problem.weight(std::move(matrix))};
  if (f.bias) inputs.push_back(problem.weight(vector_tensor(random_floats(f.n_out, 1, Fill::kGauss, context.random))));
  const ValueId out = problem.node(Op::kMatMul, inputs, {}, f.output ? kOutputLayer : 0);
  if (f.shifted) {
    problem.shift(x, 1);
    problem.shift(out, 3);
  }
  Trial trial(context.device, problem);
  MINFER_TRY(trial.prepare());
  MINFER_TRY(trial.run());
  MINFER_TRY(judge_product(context, trial, problem, is_quantised(f.dtype)));
  // A backend may pack a weight when it is used again.
  for (const char* which : {"the second run", "the third run"}) {
    const std::span<const float> output = trial.output(out);
    const std::vector<float> before(output.begin(), output.end());
    MINFER_TRY(trial.run());
    MINFER_TRY(judge_same(trial.output(out), before, f.n_out, which));
  }
  return {};
}

void add(std::vector<Case>& cases, const Form& f, bool full = false) {
  cases.push_back({text("matmul/{}/k{}_n{}_t{}/{}{}{}{}", type_name(f.dtype), f.width, f.n_out, f.rows, fill_name(f.fill),
                        f.bias ? "/bias" : "", f.shifted ? "/shifted" : "", f.output ? "/output" : ""),
                   full, [f](Context& context) { return run_matmul(context, f); }});
}

}  // namespace

void add_matmul_cases(std::vector<Case>& cases) {
  for (const uint32_t dtype : weight_types()) {
    const bool super = sdk::find_dtype(dtype)->block_elements == 256;
    const uint64_t k1 = super ? 256 : 32, k2 = super ? 512 : 64, k3 = super ? 768 : 96, k896 = super ? 1024 : 896;
    // Every width, number of outputs and number of rows that kernels treat apart, each at least once.
    const Form quick[] = {
        {dtype, k1, 1, 1},
        {dtype, k1, 33, 1},
        {dtype, k2, 31, 2, Fill::kUniform},
        {dtype, k3, 127, 3, Fill::kGauss, true},
        {dtype, k3, 16, 4},
        {dtype, k1, 63, 5, Fill::kGauss, false, true},
        {dtype, k896, 33, 7},
        {dtype, k896, 129, 1, Fill::kGauss, true},
        {dtype, k1, 128, 8},
        {dtype, k2, 17, 9, Fill::kUniform, true, true},
        {dtype, k3, 2, 16},
        {dtype, k1, 48, 17, Fill::kGauss, true},
        {dtype, k1, 31, 33},
        {dtype, k2, 15, 65, Fill::kGauss, true},
        {dtype, 4864, 5, 2},
        {dtype, k1, 300, 1, Fill::kGauss, false, false, true},
    };
    for (const Form& f : quick) add(cases, f);
    for (const Fill fill : kFills)
      if (fill != Fill::kGauss) add(cases, {dtype, k3, 37, 6, fill});
    for (const Fill fill : {Fill::kOutliers, Fill::kMax}) add(cases, {dtype, k896, 9, 1, fill});
    for (const uint64_t width : {k1, k2, k3, uint64_t{256}, k896, uint64_t{3584}, uint64_t{4864}, uint64_t{18944}})
      for (const uint64_t n_out : {1, 2, 31, 33, 63, 127, 128, 129, 896})
        for (const uint64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 64, 127, 128, 129, 512})
          if (width * n_out * rows <= 4'000'000 && (width + n_out + rows) % 3 == 0) add(cases, {dtype, width, n_out, rows}, true);
    add(cases, {dtype, k2, 151936, 1, Fill::kGauss, false, false, true}, true);
  }
}

}  // namespace minfer::conformance
