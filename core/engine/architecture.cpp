#include "engine/architecture.hpp"

namespace minfer {

Result<Graph> build_graph(ModelArchitecture& architecture, const GraphParams& params) {
  GraphBuilder builder(params, architecture.weights());
  MINFER_TRY(architecture.build(params, builder));
  MINFER_ASSIGN(Graph graph, builder.finish());
  const ModelInfo& info = architecture.info();
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op != Op::kKvStore && node.op != Op::kAttention) continue;
    if (node.layer >= info.n_layers)
      return invalid("node {}: {} of layer {}, the model has {} layers", n, op_info(node.op).name, node.layer, info.n_layers);
    if (node.attrs.n_head_kv != info.n_head_kv || node.attrs.head_dim != info.head_dim)
      return invalid("node {}: {} of layer {} with {} KV heads of {}, the model has {} of {}", n, op_info(node.op).name, node.layer,
                     node.attrs.n_head_kv, node.attrs.head_dim, info.n_head_kv, info.head_dim);
  }
  return graph;
}

}  // namespace minfer
