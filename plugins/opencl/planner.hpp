// Turns a run of nodes into launches.
#pragma once

#include "opencl_device.hpp"

namespace minfer::opencl {

// weights may be nullptr where no node reads one. quantized grows to what the plan needs.
std::unique_ptr<OpenclPlan> make_plan(const sdk::GraphView& graph, const OpenclWeights* weights, Context& context, QuantizedRows& quantized,
                                      RopeTables& rope_tables);

// True where make_plan can handle the node.
bool node_supported(const sdk::GraphView& graph, const mi_node& node);

}  // namespace minfer::opencl
