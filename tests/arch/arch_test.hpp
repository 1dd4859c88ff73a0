// What the tests of architecture plugins share: the plugin of the build folder, fed with synthetic metadata, and looks at its graphs.
#pragma once

#include <catch2/catch.hpp>

#include "engine/graph/graph_builder.hpp"
#include "fake_metadata.hpp"
#include "plugin/registry.hpp"
#include "support/support.hpp"

namespace minfer::test {

inline Result<std::unique_ptr<ModelArchitecture>> open_model(const FakeMetadata& metadata) {
  plugin::SearchPaths search;
  search.dirs = {build_dir() / "bin" / "plugins"};
  return plugin::Registry(plugin::discover(search), {}).open_model(metadata);
}

inline Graph build(ModelArchitecture& model, uint32_t n_tokens, uint32_t n_out) {
  GraphBuilder builder(make_graph_params(n_tokens, n_out, {}), model.weights());
  const Status status = model.build(make_graph_params(n_tokens, n_out, {}), builder);
  INFO((status.ok() ? std::string() : status.error().text));
  REQUIRE(status.ok());
  auto graph = builder.finish();
  REQUIRE(graph.ok());
  return *graph;
}

// The only node of that operation in that layer.
inline const Node& only(const Graph& graph, Op op, uint32_t layer) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes) {
    if (node.op != op || node.layer != layer) continue;
    REQUIRE(found == nullptr);
    found = &node;
  }
  REQUIRE(found);
  return *found;
}

inline std::vector<Op> ops(const Graph& graph, uint32_t layer) {
  std::vector<Op> out;
  for (const Node& node : graph.nodes)
    if (node.layer == layer) out.push_back(node.op);
  return out;
}

}  // namespace minfer::test
