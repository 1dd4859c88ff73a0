#include "runtime/step_work.hpp"

#include "engine/memory/kv_store.hpp"

namespace minfer {
namespace {

// Bits of a stored weight value, scales apart; 0: not an integer.
unsigned weight_bits(gguf::TensorType type) {
  using enum gguf::TensorType;
  switch (type) {
    case kQ2_K: return 2;
    case kQ3_K: return 3;
    case kQ4_0:
    case kQ4_1:
    case kQ4_K: return 4;
    case kQ5_0:
    case kQ5_1:
    case kQ5_K: return 5;
    case kQ6_K: return 6;
    case kQ8_0: return 8;
    default: return 0;
  }
}

}  // namespace

uint64_t StepWork::total_macs() const {
  uint64_t total = 0;
  for (const auto& [type, count] : macs) total += count;
  return total;
}

Result<StepWork> step_work(const Session& session, uint32_t n_tokens, uint32_t n_out, uint32_t depth) {
  MINFER_ASSIGN(const Graph graph, session.model().build(make_graph_params(n_tokens, n_out, session.cparams())));
  StepWork work;
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kAttention) work.kv_bytes += session.kv_layer_bytes(depth + n_tokens);
    if (node.op != Op::kMatMul) continue;
    const Value& weight = graph.values[node.inputs[1]];
    const gguf::TypeInfo* type = gguf::find_type(static_cast<uint32_t>(weight.dtype));
    if (!type) return internal_error("a weight has type {}", static_cast<uint32_t>(weight.dtype));
    MINFER_ASSIGN(const uint64_t bytes, gguf::tensor_bytes(*type, {weight.shape.dims.data(), weight.shape.n_dims}));
    work.weight_bytes += bytes;
    work.macs[gguf::TensorType{type->id}] += weight.shape.elements() * graph.values[node.inputs[0]].shape.rows();
  }
  return work;
}

double integer_bound(const StepWork& work, const MachineCeilings& ceilings) {
  double cycles = 0;
  for (const auto& [type, count] : work.macs) {
    const unsigned bits = weight_bits(type);
    if (bits == 0 || ceilings.macs_per_cycle(bits) == 0) return 0;
    cycles += static_cast<double>(count) / ceilings.macs_per_cycle(bits);
  }
  return cycles > 0 ? static_cast<double>(work.total_macs()) / cycles : 0;
}

}  // namespace minfer
