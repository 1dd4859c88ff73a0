// A few nodes with everything they read: what a case asks a device to compute. Pure description; the reference evaluates it and a
// trial runs it. Sources stand for activations that another device or the host has put into memory.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "conformance/random_data.hpp"
#include "engine/device.hpp"

namespace minfer::conformance {

class Problem {
 public:
  uint32_t n_ctx = 4096;
  // Places as the engine gives them: memory is used again as soon as its value has been read for the last time.
  bool packed = false;

  ValueId source(const Shape& shape, std::vector<float> data);
  ValueId input(InputKind kind, const Shape& shape, std::vector<int32_t> data);
  ValueId input(InputKind kind, const std::vector<int32_t>& data) { return input(kind, Shape{data.size()}, data); }
  ValueId weight(Tensor tensor);
  // Output of the node, kNone where it has none. Shapes follow the rules of the engine; what they refuse is kept as error().
  ValueId node(Op op, std::vector<ValueId> inputs, const OpAttrs& attrs = {}, uint32_t layer = 0);
  // A node that the engine's rules may not know: for what a backend must refuse.
  ValueId unchecked_node(Op op, std::vector<ValueId> inputs, const OpAttrs& attrs, const Shape& out);
  void kv(uint32_t layer, const KvLayout& layout) { kv_[layer] = layout; }

  void keep(ValueId value) { kept_.insert(value); }                                // compared although a node reads it
  void place_over(ValueId output, ValueId input) { place_over_[output] = input; }  // shares its memory
  void shift(ValueId value, uint32_t floats) { shift_[value] = floats; }           // off the usual alignment, as views are

  void set(ValueId source, std::vector<float> data) { sources_.at(source) = std::move(data); }
  void set(InputKind kind, std::vector<int32_t> data) { inputs_[static_cast<size_t>(kind)] = std::move(data); }

  const std::optional<Error>& error() const { return error_; }
  const Graph& graph() const { return graph_; }
  const std::vector<NodeId>& nodes() const { return nodes_; }  // those the device runs
  const std::map<ValueId, std::vector<float>>& sources() const { return sources_; }
  const std::vector<int32_t>& input_data(uint32_t kind) const { return inputs_[kind]; }
  const std::vector<Tensor>& tensors() const { return tensors_; }  // by weight id
  const std::map<uint32_t, KvLayout>& kv_layouts() const { return kv_; }
  // Values that must lie in memory after the run: those kept, and those that no node reads.
  bool is_kept(ValueId value) const;
  std::optional<ValueId> placed_over(ValueId value) const;
  uint32_t shift_of(ValueId value) const { return shift_.count(value) ? shift_.at(value) : 0; }

 private:
  ValueId add(Value value);

  Graph graph_;
  std::vector<NodeId> nodes_;
  std::map<ValueId, std::vector<float>> sources_;
  std::array<std::vector<int32_t>, kInputKinds> inputs_;
  std::vector<Tensor> tensors_;
  std::map<uint32_t, KvLayout> kv_;
  std::set<ValueId> kept_, read_;
  std::map<ValueId, ValueId> place_over_;
  std::map<ValueId, uint32_t> shift_;
  std::optional<Error> error_;
};

}  // namespace minfer::conformance
