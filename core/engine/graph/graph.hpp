// The graph IR: nodes over a table of values. Pure data: holds no memory of the model, no device, no position.
//
// Node order is execution order; a node's inputs are made by earlier nodes. Graph inputs and weights are values without a
// producer. Shapes are feature-fastest: a hidden state is [n_embd, rows].
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/graph/op.hpp"

namespace minfer {

// Element type. Activations are f32, inputs i32; weights and KV rows may have any type number of the GGUF format, which the engine
// passes on without knowing its layout.
enum class DType : uint32_t { kF32 = 0, kF16 = 1, kQ8_0 = 8, kI32 = 26 };

struct Shape {
  std::array<uint64_t, 4> dims{1, 1, 1, 1};
  uint32_t n_dims = 1;

  Shape() = default;
  Shape(std::initializer_list<uint64_t> list);
  uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  uint64_t elements() const { return dims[0] * rows(); }
  std::string text() const;  // "[896, 12]"
  friend bool operator==(const Shape&, const Shape&) = default;
};

using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t kNone = 0xffffffffu;

// What the host fills before each step (minfer/abi/graph.h, MI_INPUT_*).
enum class InputKind : uint32_t { kTokenIds, kPositions, kRowSeq, kBlockTable, kOutRows, kOutPositions, kOutRowSeq };
inline constexpr uint32_t kInputKinds = 7;
std::string_view input_name(InputKind kind);

enum class ValueKind : uint32_t { kActivation, kInput, kWeight };

struct Value {
  ValueKind kind = ValueKind::kActivation;
  DType dtype = DType::kF32;
  Shape shape;
  uint32_t index = kNone;     // kInput: InputKind; kWeight: weight id
  NodeId producer = kNone;    // kActivation
  ValueId alias_of = kNone;   // output of a View: the value whose memory it shares
  uint64_t alias_offset = 0;  // bytes into that value

  uint64_t bytes() const { return shape.elements() * 4; }  // activations and inputs only
  friend bool operator==(const Value&, const Value&) = default;
};

// A transformer block, or one of these two places outside the blocks.
inline constexpr uint32_t kEmbeddingLayer = 0xfffffffeu;
inline constexpr uint32_t kOutputLayer = 0xfffffffdu;

struct Node {
  Op op;
  uint32_t layer = 0;
  std::vector<ValueId> inputs;  // kNone where an optional one is absent
  std::vector<ValueId> outputs;
  OpAttrs attrs;
  friend bool operator==(const Node&, const Node&) = default;
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;   // values of kind kInput, in order of declaration
  std::vector<ValueId> outputs;  // what the host reads after a step

  // The value at the end of a chain of views, and the offset in bytes into it.
  ValueId alias_root(ValueId id, uint64_t* offset_bytes = nullptr) const;
  // Nodes whose results reach an output or the KV. Others get no memory and are not run.
  std::vector<bool> live_nodes() const;
  // Number of input slots that read each value, over live nodes; x + x counts two.
  std::vector<uint32_t> consumer_edges(const std::vector<bool>& live) const;
};

// Inputs exist, sources before consumers, arities, types and shapes agree with the operations' contracts, every attention
// is preceded by a store of its layer. The builder cannot make an invalid graph; this is for graphs from elsewhere.
Status validate(const Graph& graph);

// Graphviz text. `node_device` (optional) names the device of each node.
std::string dump_dot(const Graph& graph, const std::vector<std::string>& node_device = {});

}  // namespace minfer
