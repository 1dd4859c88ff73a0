// A compiled graph as JSON for tools: format minfer-graph, version 1.
#pragma once

#include <string>
#include <string_view>

#include "engine/reuse/compiled_graph.hpp"

namespace minfer {

// The names of the devices that run each node, for dump_dot.
std::vector<std::string> node_devices(const CompiledGraph& compiled, const LoadedModel& model);

// {format, version, model, kind, inputs, outputs, nodes: [{id, name, op, detail, shape, dtype, backend, src, meta}]}
// An input is {name, shape, dtype}; src and outputs hold names: of a node ("n12", a further output "n12.1"), an input, a weight, or
// null for an optional input that is absent. The graph is the one that runs: assigned and fused.
std::string dump_json(const CompiledGraph& compiled, const LoadedModel& model, std::string_view model_name);

}  // namespace minfer
