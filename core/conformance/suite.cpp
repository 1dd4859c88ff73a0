#include "conformance/suite.hpp"

#include <algorithm>
#include <set>

#include "engine/graph/op.hpp"

namespace minfer::conformance {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name.find(pattern) != std::string_view::npos;
  const size_t at = name.find(pattern.substr(0, star));
  return at != std::string_view::npos && matches(pattern.substr(star + 1), name.substr(at + star));
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_matmul_cases(cases);
  add_row_cases(cases);
  add_attention_cases(cases);
  add_kv_cases(cases);
  add_graph_cases(cases);
  add_refusal_cases(cases);
  // The long set goes over some of the quick one's: the first of a name stays.
  std::set<std::string> names;
  cases.erase(std::remove_if(cases.begin(), cases.end(), [&](const Case& c) { return !names.insert(c.name).second; }), cases.end());
  return cases;
}

std::vector<Case> select(const std::vector<Case>& cases, std::string_view filter, bool full) {
  std::vector<Case> out;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(out), [&](const Case& c) { return c.name == filter; });
  if (out.empty())
    std::copy_if(cases.begin(), cases.end(), std::back_inserter(out),
                 [&](const Case& c) { return (full || !c.full) && matches(filter, c.name); });
  return out;
}

Status judge_outputs(const Trial& trial, const Problem& problem, const std::vector<RowValues>& want, const Limits& limits) {
  const Graph& graph = problem.graph();
  for (const NodeId n : problem.nodes())
    for (const ValueId id : graph.nodes[n].outputs)
      if (problem.is_kept(id)) MINFER_TRY(judge(trial.output(id), want[id], limits, op_info(graph.nodes[n].op).name));
  return {};
}

Status run_and_judge(Context& context, const Problem& problem, const Limits& limits) {
  Trial trial(context.device, problem);
  MINFER_TRY(trial.prepare());
  MINFER_TRY(trial.run());
  ReferenceKvs none;
  return judge_outputs(trial, problem, evaluate(problem, Contract::kFloat, none), limits);
}

}  // namespace minfer::conformance
