// minfer plugin SDK for model architectures. Derive from Architecture and Model, then write once at file scope:
//
//   MINFER_EXPORT_ARCH(MyArchitecture, "name", "1.2.0")
//
// Architecture::create reads the metadata of a file, refuses what it cannot run, and returns a Model that is complete: its
// info, its weights and a build that is pure (equal parameters give equal graphs). Errors are thrown (common.hpp).
// Shapes are feature-fastest: [n_embd, n] is n rows of n_embd contiguous elements.
#ifndef MINFER_PLUGIN_ARCH_HPP_
#define MINFER_PLUGIN_ARCH_HPP_

#include <cmath>
#include <initializer_list>
#include <memory>
#include <vector>

#include "minfer/plugin/common.hpp"

MINFER_SDK_BEGIN

struct TensorInfo {
  uint32_t dtype = 0;
  uint32_t n_dims = 0;
  uint64_t dims[4] = {1, 1, 1, 1};
};

// Typed access to a model file. A key that is missing, of another type or out of range is an error that names the key (and the
// value); the ..._or forms take a value for a missing key only.
class Metadata {
 public:
  explicit Metadata(const mi_metadata_v1* metadata) : metadata_(metadata) {}

  std::optional<uint64_t> find_u64(std::string_view key) const { return find<uint64_t>(key, metadata_->get_u64); }
  std::optional<double> find_f64(std::string_view key) const { return find<double>(key, metadata_->get_f64); }
  std::optional<std::string_view> find_string(std::string_view key) const {
    const std::optional<mi_string> text = find<mi_string>(key, metadata_->get_string);
    if (!text) return std::nullopt;
    return from_abi(*text);
  }
  std::optional<TensorInfo> find_tensor(std::string_view name) const {
    mi_tensor_info info{};
    info.struct_size = sizeof info;
    mi_error error = empty_error();
    const int32_t code = metadata_->get_tensor(metadata_->ctx, to_abi(name), &info, &error);
    if (code == MI_NOT_FOUND) return std::nullopt;
    if (code != MI_OK) throw Error(code, error.text);
    TensorInfo out;
    out.dtype = info.dtype;
    out.n_dims = info.n_dims;
    for (uint32_t i = 0; i < 4 && i < info.n_dims; ++i) out.dims[i] = info.dims[i];
    return out;
  }

  // Whole numbers in [min, max].
  uint32_t u32(std::string_view key, uint32_t min, uint32_t max) const { return in_range(key, need(find_u64(key), key), min, max); }
  uint32_t u32_or(std::string_view key, uint32_t otherwise, uint32_t min, uint32_t max) const {
    return in_range(key, find_u64(key).value_or(otherwise), min, max);
  }
  // Finite and greater than 0, also as f32.
  float positive_f32(std::string_view key) const { return positive(key, need(find_f64(key), key)); }
  float positive_f32_or(std::string_view key, float otherwise) const { return positive(key, find_f64(key).value_or(otherwise)); }
  TensorInfo tensor(std::string_view name) const {
    const std::optional<TensorInfo> info = find_tensor(name);
    if (!info) fail(MI_INVALID_ARGUMENT, "tensor ", name, " is missing from the file");
    return *info;
  }

 private:
  static mi_error empty_error() {
    mi_error error{};
    error.struct_size = sizeof error;
    return error;
  }
  template <class T>
  std::optional<T> find(std::string_view key, int32_t (*get)(void*, mi_string, T*, mi_error*)) const {
    T value{};
    mi_error error = empty_error();
    const int32_t code = get(metadata_->ctx, to_abi(key), &value, &error);
    if (code == MI_NOT_FOUND) return std::nullopt;
    if (code != MI_OK) throw Error(code, error.text);
    return value;
  }
  template <class T>
  static T need(const std::optional<T>& value, std::string_view key) {
    if (!value) fail(MI_INVALID_ARGUMENT, key, " is missing from the file's metadata");
    return *value;
  }
  static uint32_t in_range(std::string_view key, uint64_t value, uint32_t min, uint32_t max) {
    if (value < min || value > max) fail(MI_INVALID_ARGUMENT, key, " is ", value, ": must be from ", min, " to ", max);
    return static_cast<uint32_t>(value);
  }
  static float positive(std::string_view key, double value) {
    const float narrow = static_cast<float>(value);
    if (!std::isfinite(narrow) || !(narrow > 0)) fail(MI_INVALID_ARGUMENT, key, " is ", value, ": must be a finite number above 0");
    return narrow;
  }

  const mi_metadata_v1* metadata_;
};

// A weight that graphs may name. Made by WeightTable::add; default-constructed: absent (an optional bias).
struct Weight {
  uint32_t id = MI_NONE;
  explicit operator bool() const { return id != MI_NONE; }
};

// The weights of a model in the order of their ids. The host compares each with the file and refuses what differs.
class WeightTable {
 public:
  Weight add(std::string name, uint32_t layer, uint32_t roles, std::initializer_list<uint64_t> dims) {
    Entry entry;
    entry.name = std::move(name);
    entry.layer = layer;
    entry.roles = roles;
    for (uint64_t dim : dims) entry.dims[entry.n_dims++] = dim;
    entries_.push_back(std::move(entry));
    return Weight{static_cast<uint32_t>(entries_.size() - 1)};
  }
  Weight matrix(std::string name, uint32_t layer, uint64_t n_in, uint64_t n_out) {
    return add(std::move(name), layer, MI_ROLE_MATRIX, {n_in, n_out});
  }
  Weight vector(std::string name, uint32_t layer, uint64_t n) { return add(std::move(name), layer, MI_ROLE_VECTOR, {n}); }
  // Not from the file: these values, which the model has worked out. The name is for people.
  Weight constant(std::string name, uint32_t layer, std::vector<float> values) {
    const Weight weight = vector(std::move(name), layer, values.size());
    entries_.back().values = std::move(values);
    return weight;
  }

  void emit(const mi_weight_sink_v1* sink) const {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      const mi_weight_desc desc = {sizeof(mi_weight_desc),
                                   entry.roles,
                                   to_abi(entry.name),
                                   entry.layer,
                                   entry.n_dims,
                                   {entry.dims[0], entry.dims[1], entry.dims[2], entry.dims[3]},
                                   entry.values.empty() ? nullptr : entry.values.data()};
      uint32_t id = MI_NONE;
      mi_error error{};
      error.struct_size = sizeof error;
      const int32_t code = sink->add(sink->ctx, &desc, &id, &error);
      if (code != MI_OK) throw Error(code, error.text);
      if (id != i) fail(MI_INTERNAL, "weight ", entry.name, ": the host gave id ", id, ", expected ", i);
    }
  }

 private:
  struct Entry {
    std::string name;
    uint32_t layer = 0;
    uint32_t roles = 0;
    uint32_t n_dims = 0;
    uint64_t dims[4] = {1, 1, 1, 1};
    std::vector<float> values;  // of a constant
  };
  std::vector<Entry> entries_;
};

// A value of the graph under construction.
struct Value {
  uint32_t id = MI_NONE;
};

// How q and k are rotated (MI_OP_ROPE).
struct Rope {
  uint32_t kind = MI_ROPE_SPLIT_HALVES;
  float freq_base = 10000;
  float freq_scale = 1;
};

// Emits nodes. Each call states its shapes; the host infers and checks them, and a mismatch is thrown here.
class GraphBuilder {
 public:
  explicit GraphBuilder(const mi_builder_v1* builder) : builder_(builder) {}

  // The layer of the nodes that follow: a block, MI_LAYER_EMBEDDING or MI_LAYER_OUTPUT.
  void set_layer(uint32_t layer) { layer_ = layer; }

  // A graph input, MI_INPUT_*. Declare all of them before the first node.
  Value input(uint32_t kind) {
    Value value;
    check([&](mi_error* error) { return builder_->input(builder_->ctx, kind, &value.id, error); });
    return value;
  }
  void output(Value value) {
    check([&](mi_error* error) { return builder_->output(builder_->ctx, value.id, error); });
  }

  // table [n, m] (weight), ids [r] -> [n, r]
  Value embedding(Weight table, Value ids) { return node(MI_OP_GET_ROWS, {weight(table), ids}); }
  // x [n, m], rows [r] -> [n, r]
  Value get_rows(Value x, Value rows) { return node(MI_OP_GET_ROWS, {x, rows}); }
  // x [n, ...], w [n] -> same shape: x / sqrt(mean(x^2) + eps) * w
  Value rms_norm(Value x, Weight w, float eps) {
    mi_op_attrs attrs = empty_attrs();
    attrs.eps = eps;
    return node(MI_OP_RMS_NORM, {x, weight(w)}, attrs);
  }
  // x [n_in, r], w [n_in, n_out], bias [n_out] -> [n_out, r]
  Value matmul(Value x, Weight w, Weight bias = {}) {
    return bias ? node(MI_OP_MATMUL, {x, weight(w), weight(bias)}) : node(MI_OP_MATMUL, {x, weight(w)});
  }
  // x [n_head*head_dim, r], positions [r], freq_factors [head_dim/2] -> x rotated
  Value rope(Value x, Value positions, const Rope& rope, uint32_t n_head, uint32_t head_dim, Weight freq_factors = {}) {
    mi_op_attrs attrs = empty_attrs();
    attrs.n_head = n_head;
    attrs.head_dim = head_dim;
    attrs.rope_kind = rope.kind;
    attrs.rope_freq_base = rope.freq_base;
    attrs.rope_freq_scale = rope.freq_scale;
    return freq_factors ? node(MI_OP_ROPE, {x, positions, weight(freq_factors)}, attrs) : node(MI_OP_ROPE, {x, positions}, attrs);
  }
  // k, v [n_head_kv*head_dim, r], positions [r], row_seq [r], block_table: into the KV of this layer
  void kv_store(Value k, Value v, Value positions, Value row_seq, Value block_table, uint32_t n_head_kv, uint32_t head_dim) {
    mi_op_attrs attrs = empty_attrs();
    attrs.n_head_kv = n_head_kv;
    attrs.head_dim = head_dim;
    const uint32_t inputs[] = {k.id, v.id, positions.id, row_seq.id, block_table.id};
    add(MI_OP_KV_STORE, inputs, 5, attrs, nullptr, 0, nullptr, 0);
  }
  // q [n_head*head_dim, r], positions [r], row_seq [r], block_table -> [n_head*head_dim, r]; window 0: every earlier position
  Value attention(Value q, Value positions, Value row_seq, Value block_table, uint32_t n_head, uint32_t n_head_kv, uint32_t head_dim,
                  float scale, uint32_t window = 0) {
    mi_op_attrs attrs = empty_attrs();
    attrs.n_head = n_head;
    attrs.n_head_kv = n_head_kv;
    attrs.head_dim = head_dim;
    attrs.attn_scale = scale;
    attrs.window = window;
    return node(MI_OP_ATTENTION, {q, positions, row_seq, block_table}, attrs);
  }
  // a, b of one shape -> that shape
  Value add(Value a, Value b) { return node(MI_OP_ADD, {a, b}); }
  Value mul(Value a, Value b) { return node(MI_OP_MUL, {a, b}); }
  // x -> x / (1 + exp(-x))
  Value silu(Value x) { return node(MI_OP_SILU, {x}); }
  // The same memory under another shape, from element `offset` on.
  Value view(Value x, std::initializer_list<uint64_t> dims, uint64_t offset = 0) {
    mi_op_attrs attrs = empty_attrs();
    attrs.view_offset = offset;
    Value out;
    add(MI_OP_VIEW, &x.id, 1, attrs, dims.begin(), static_cast<uint32_t>(dims.size()), &out.id, 1);
    return out;
  }

 private:
  static mi_op_attrs empty_attrs() {
    mi_op_attrs attrs{};
    attrs.struct_size = sizeof attrs;
    return attrs;
  }
  template <class Call>
  static void check(Call&& call) {
    mi_error error{};
    error.struct_size = sizeof error;
    const int32_t code = call(&error);
    if (code != MI_OK) throw Error(code, error.text);
  }
  uint32_t weight(Weight w) {
    uint32_t value = MI_NONE;
    check([&](mi_error* error) { return builder_->weight(builder_->ctx, w.id, &value, error); });
    return value;
  }
  // Value or id, so that a list of inputs reads as the call does.
  struct Input {
    uint32_t id;
    Input(Value value) : id(value.id) {}
    Input(uint32_t value_id) : id(value_id) {}
  };
  Value node(uint32_t op, std::initializer_list<Input> inputs, const mi_op_attrs& attrs = empty_attrs()) {
    uint32_t ids[8];
    uint32_t n = 0;
    for (const Input& input : inputs) ids[n++] = input.id;
    Value out;
    add(op, ids, n, attrs, nullptr, 0, &out.id, 1);
    return out;
  }
  void add(uint32_t op, const uint32_t* inputs, uint32_t n_inputs, const mi_op_attrs& attrs, const uint64_t* dims, uint32_t n_dims,
           uint32_t* outputs, uint32_t n_outputs) {
    check([&](mi_error* error) {
      return builder_->add_node(builder_->ctx, op, layer_, inputs, n_inputs, &attrs, dims, n_dims, outputs, n_outputs, error);
    });
  }

  const mi_builder_v1* builder_;
  uint32_t layer_ = MI_LAYER_EMBEDDING;
};

struct ModelInfo {
  uint32_t n_layers = 0;
  uint32_t n_embd = 0;
  uint32_t n_vocab = 0;
  uint32_t n_ctx_train = 0;
  uint32_t n_head_kv = 0;
  uint32_t head_dim = 0;
};

// What may shape a graph.
struct GraphParams {
  uint32_t n_tokens = 0;  // rows of the batch
  uint32_t n_out = 0;     // rows whose logits are wanted, 0..n_tokens
};

// Immutable after construction.
class Model {
 public:
  virtual ~Model() = default;
  virtual ModelInfo info() const = 0;
  virtual const WeightTable& weights() const = 0;
  virtual void build(const GraphParams& params, GraphBuilder& builder) const = 0;
};

// One opened plugin. Its constructor takes a `const Host&`.
class Architecture {
 public:
  virtual ~Architecture() = default;
  // 0: not mine. The highest score among the installed architectures wins.
  virtual uint32_t match(const Metadata& metadata) const = 0;
  virtual std::unique_ptr<Model> create(const Metadata& metadata) const = 0;
};

namespace arch_thunks {

inline const Model& as_model(mi_model* model) { return *reinterpret_cast<const Model*>(model); }

inline uint32_t match(void* self, const mi_metadata_v1* metadata) noexcept {
  try {
    return static_cast<const Architecture*>(self)->match(Metadata(metadata));
  } catch (...) {
    return 0;
  }
}
inline int32_t create(void* self, const mi_metadata_v1* metadata, mi_model** out, mi_error* error) noexcept {
  return guarded(error, [&] {
    std::unique_ptr<Model> model = static_cast<const Architecture*>(self)->create(Metadata(metadata));
    if (!model) throw Error(MI_INTERNAL, "the plugin returned no model");
    *out = reinterpret_cast<mi_model*>(model.release());
  });
}
inline void destroy(mi_model* model) noexcept { delete reinterpret_cast<Model*>(model); }
inline int32_t info(mi_model* model, mi_model_info* out, mi_error* error) noexcept {
  return guarded(error, [&] {
    const ModelInfo info = as_model(model).info();
    out->n_layers = info.n_layers;
    out->n_embd = info.n_embd;
    out->n_vocab = info.n_vocab;
    out->n_ctx_train = info.n_ctx_train;
    out->n_head_kv = info.n_head_kv;
    out->head_dim = info.head_dim;
  });
}
inline int32_t weights(mi_model* model, const mi_weight_sink_v1* sink, mi_error* error) noexcept {
  return guarded(error, [&] { as_model(model).weights().emit(sink); });
}
inline int32_t build(mi_model* model, const mi_graph_params* params, const mi_builder_v1* builder, mi_error* error) noexcept {
  return guarded(error, [&] {
    GraphBuilder graph(builder);
    as_model(model).build(GraphParams{params->n_tokens, params->n_out}, graph);
  });
}

inline constexpr mi_arch_v1 kTable = {sizeof(mi_arch_v1), 0, match, create, destroy, info, weights, build};

}  // namespace arch_thunks

MINFER_SDK_END

#define MINFER_EXPORT_ARCH(Class, name, version) \
  MINFER_EXPORT_PLUGIN(Class, ::minfer::sdk::Architecture, ::minfer::sdk::arch_thunks::kTable, MI_PLUGIN_ARCHITECTURE, name, version)

#endif
