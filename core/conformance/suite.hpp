// The cases and what runs them.
//
// A case's name says all that it is: operation, type or form, shape, data, variant. Its data follow from the seed and its name alone, so a
// case repeats by itself.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "conformance/trial.hpp"
#include "conformance/verdict.hpp"

namespace minfer::conformance {

struct Options {
  uint64_t seed = 42;
  bool full = false;
  // Demands what the numbers of the project promise for the same result everywhere: products in the 8-bit contract, fused nodes and
  // single rows with the bits of their chains and batches.
  bool strict = false;
};

// Which of its legitimate readings a product was found to follow.
enum class ProductClass { kQ8, kFloat, kHalf, kLoose };
inline constexpr const char* kProductClasses[] = {"8-bit contract", "f32", "f16", "loose"};

struct Context {
  Device& device;
  // A second device of the same plugin, opened for itself.
  std::function<Result<Device*>()> second_device;
  Options options;
  Random random;
  std::map<ProductClass, uint32_t>* product_classes;
};

struct Case {
  std::string name;
  bool full = false;  // only in the long set
  // kUnsupported: the device says no to it. Every other error: the backend is wrong.
  std::function<Status(Context&)> run;
};

// By file.
void add_matmul_cases(std::vector<Case>& cases);
void add_row_cases(std::vector<Case>& cases);
void add_attention_cases(std::vector<Case>& cases);
void add_kv_cases(std::vector<Case>& cases);
void add_graph_cases(std::vector<Case>& cases);
void add_refusal_cases(std::vector<Case>& cases);

std::vector<Case> all_cases();
// Those whose name is the filter, from both sets; or else those of the set whose name contains it ('*' matches anything).
std::vector<Case> select(const std::vector<Case>& cases, std::string_view filter, bool full);

// Runs a problem of one reading and judges all its kept values.
Status run_and_judge(Context& context, const Problem& problem, const Limits& limits);
Status judge_outputs(const Trial& trial, const Problem& problem, const std::vector<RowValues>& want, const Limits& limits);

}  // namespace minfer::conformance
