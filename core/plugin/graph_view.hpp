// Part of an engine graph as the C structs that a backend reads. Owns the arrays, so the view is valid as long as this object.
#pragma once

#include <functional>
#include <vector>

#include "engine/device.hpp"
#include "minfer/abi/graph.h"

namespace minfer::plugin {

mi_op_attrs to_abi(const OpAttrs& attrs);
mi_kv_layout to_abi(const KvLayout& layout);

class AbiGraphView {
 public:
  // handle: the backend's own object behind an engine buffer; called with non-null buffers only.
  AbiGraphView(const SplitView& split, const std::function<mi_buffer*(Buffer*)>& handle);
  AbiGraphView(const AbiGraphView&) = delete;
  AbiGraphView& operator=(const AbiGraphView&) = delete;

  const mi_graph_view* get() const { return &view_; }

 private:
  std::vector<mi_value> values_;  // the whole table of the graph, so that value ids are indices
  std::vector<mi_node> nodes_;
  std::vector<mi_op_attrs> attrs_;
  std::vector<mi_kv_layer> kv_layers_;
  mi_graph_view view_{};
};

}  // namespace minfer::plugin
