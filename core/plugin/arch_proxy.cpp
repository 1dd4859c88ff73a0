#include "plugin/arch_proxy.hpp"

#include "plugin/abi_error.hpp"

namespace minfer::plugin {
namespace {

const MetadataSource& source(void* ctx) { return *static_cast<const MetadataSource*>(ctx); }

template <class T, class Out>
Status store(Result<T> value, Out* out) {
  if (!value.ok()) return value.error();
  *out = static_cast<Out>(*value);
  return {};
}

mi_metadata_v1 metadata_table(const MetadataSource& metadata) {
  mi_metadata_v1 table{};
  table.struct_size = sizeof table;
  table.ctx = const_cast<MetadataSource*>(&metadata);
  table.get_u64 = [](void* ctx, mi_string key, uint64_t* out, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&] { return store(source(ctx).get_u64(view(key)), out); });
  };
  table.get_f64 = [](void* ctx, mi_string key, double* out, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&] { return store(source(ctx).get_f64(view(key)), out); });
  };
  table.get_bool = [](void* ctx, mi_string key, uint32_t* out, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&] { return store(source(ctx).get_bool(view(key)), out); });
  };
  table.get_string = [](void* ctx, mi_string key, mi_string* out, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&]() -> Status {
      MINFER_ASSIGN(const std::string_view text, source(ctx).get_string(view(key)));
      *out = to_abi(text);
      return {};
    });
  };
  table.get_tensor = [](void* ctx, mi_string name, mi_tensor_info* out, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&]() -> Status {
      MINFER_ASSIGN(const TensorEntry tensor, source(ctx).get_tensor(view(name)));
      out->dtype = static_cast<uint32_t>(tensor.dtype);
      out->n_dims = tensor.shape.n_dims;
      for (size_t i = 0; i < 4; ++i) out->dims[i] = tensor.shape.dims[i];
      return {};
    });
  };
  return table;
}

Result<Shape> read_shape(const uint64_t* dims, uint32_t n_dims) {
  if (!dims || n_dims == 0 || n_dims > 4) return internal_error("a shape of {} dimensions", n_dims);
  Shape shape;
  shape.n_dims = n_dims;
  for (uint32_t i = 0; i < n_dims; ++i) shape.dims[i] = dims[i];
  return shape;
}

// Collects the weights a model names, each that is not the model's own checked against the file.
struct WeightCollector {
  const MetadataSource& metadata;
  std::vector<WeightInfo> weights;

  Status add(const mi_weight_desc& desc, uint32_t* out_id) {
    WeightInfo info;
    info.name = std::string(view(desc.name));
    info.roles = desc.roles;
    info.layer = desc.layer;
    MINFER_ASSIGN(info.shape, read_shape(desc.dims, desc.n_dims));
    if (MI_HAS_FIELD(mi_weight_desc, &desc, values) && desc.values) {
      if (info.shape.n_dims != 1 || info.roles != kRoleVector) return internal_error("constant {} is not a vector", info.name);
      info.values.assign(desc.values, desc.values + info.shape.dims[0]);
      return take(std::move(info), out_id);
    }
    const auto tensor = metadata.get_tensor(info.name);
    if (!tensor.ok()) {
      if (tensor.error().code != ErrorCode::kNotFound) return tensor.error();
      return invalid("tensor {} is missing from the file: the model needs it with shape {}", info.name, info.shape.text());
    }
    if (tensor->shape != info.shape)
      return invalid("tensor {} has shape {} in the file, the model's metadata ask for {}", info.name, tensor->shape.text(),
                     info.shape.text());
    info.dtype = tensor->dtype;
    return take(std::move(info), out_id);
  }

 private:
  Status take(WeightInfo info, uint32_t* out_id) {
    *out_id = static_cast<uint32_t>(weights.size());
    weights.push_back(std::move(info));
    return {};
  }
};

GraphBuilder& builder_of(void* ctx) { return *static_cast<GraphBuilder*>(ctx); }

Result<OpAttrs> read_attrs(const mi_op_attrs* attrs) {
  if (!attrs || !MI_HAS_FIELD(mi_op_attrs, attrs, view_offset)) return internal_error("a node without its attributes");
  OpAttrs out;
  out.n_head = attrs->n_head;
  out.n_head_kv = attrs->n_head_kv;
  out.head_dim = attrs->head_dim;
  out.eps = attrs->eps;
  out.rope_kind = static_cast<RopeKind>(attrs->rope_kind);
  out.rope_freq_base = attrs->rope_freq_base;
  out.rope_freq_scale = attrs->rope_freq_scale;
  out.attn_scale = attrs->attn_scale;
  out.window = attrs->window;
  out.view_offset = attrs->view_offset;
  if (attrs->rope_kind > MI_ROPE_INTERLEAVED) return unsupported("rotation kind {} is not known to this core", attrs->rope_kind);
  return out;
}

mi_builder_v1 builder_table(GraphBuilder& builder) {
  mi_builder_v1 table{};
  table.struct_size = sizeof table;
  table.ctx = &builder;
  table.input = [](void* ctx, uint32_t kind, uint32_t* out, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&]() -> Status {
      if (kind >= MI_INPUT_COUNT) return unsupported("graph input {} is not known to this core", kind);
      return store(builder_of(ctx).input(static_cast<InputKind>(kind)), out);
    });
  };
  table.weight = [](void* ctx, uint32_t id, uint32_t* out, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&] { return store(builder_of(ctx).weight(id), out); });
  };
  table.add_node = [](void* ctx, uint32_t op, uint32_t layer, const uint32_t* inputs, uint32_t n_inputs, const mi_op_attrs* attrs,
                      const uint64_t* dims, uint32_t n_dims, uint32_t* outputs, uint32_t n_outputs, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&]() -> Status {
      const OpInfo* info = find_op(op);
      if (!info || op >= MI_OP_SILU_MUL) return unsupported("operation {} is not known to this core", op);
      if (n_outputs != info->n_outputs) return internal_error("{} has {} outputs, not {}", info->name, info->n_outputs, n_outputs);
      MINFER_ASSIGN(const OpAttrs read, read_attrs(attrs));
      Shape shape;
      if (info->op == Op::kView) {
        MINFER_ASSIGN(shape, read_shape(dims, n_dims));
      }
      MINFER_ASSIGN(const auto made, builder_of(ctx).add_node(info->op, layer, {inputs, n_inputs}, read, shape));
      std::copy(made.begin(), made.end(), outputs);
      return {};
    });
  };
  table.output = [](void* ctx, uint32_t value, mi_error* error) noexcept -> int32_t {
    return host_call(error, [&] { return builder_of(ctx).output(value); });
  };
  return table;
}

class ProxyModel final : public ModelArchitecture {
 public:
  ProxyModel(std::shared_ptr<OpenPlugin> plugin, mi_model* handle)
      : plugin_(std::move(plugin)), handle_(handle), who_(text("architecture {}", plugin_->name())) {}
  ~ProxyModel() override { plugin_->arch()->destroy(handle_); }

  Status read(const MetadataSource& metadata) {
    mi_model_info info{};
    info.struct_size = sizeof info;
    AbiError error;
    MINFER_TRY(error.status(plugin_->arch()->info(handle_, &info, error.out()), who_));
    info_ = {info.n_layers, info.n_embd, info.n_vocab, info.n_ctx_train, info.n_head_kv, info.head_dim};

    WeightCollector collector{metadata, {}};
    mi_weight_sink_v1 sink{};
    sink.struct_size = sizeof sink;
    sink.ctx = &collector;
    sink.add = [](void* ctx, const mi_weight_desc* desc, uint32_t* out_id, mi_error* e) noexcept -> int32_t {
      return host_call(e, [&] { return static_cast<WeightCollector*>(ctx)->add(*desc, out_id); });
    };
    MINFER_TRY(error.status(plugin_->arch()->weights(handle_, &sink, error.out()), who_));
    weights_ = std::move(collector.weights);
    return {};
  }

  const ModelInfo& info() const override { return info_; }
  const std::vector<WeightInfo>& weights() const override { return weights_; }

  Status build(const GraphParams& params, GraphBuilder& builder) override {
    const mi_graph_params in = {sizeof(mi_graph_params), params.n_tokens, params.n_out, 0};
    const mi_builder_v1 table = builder_table(builder);
    AbiError error;
    return error.status(plugin_->arch()->build(handle_, &in, &table, error.out()), who_);
  }

 private:
  std::shared_ptr<OpenPlugin> plugin_;
  mi_model* handle_;
  std::string who_;
  ModelInfo info_;
  std::vector<WeightInfo> weights_;
};

}  // namespace

uint32_t match(const OpenPlugin& plugin, const MetadataSource& metadata) {
  const mi_metadata_v1 table = metadata_table(metadata);
  return plugin.arch()->match(plugin.self(), &table);
}

Result<std::unique_ptr<ModelArchitecture>> create_model(const std::shared_ptr<OpenPlugin>& plugin, const MetadataSource& metadata) {
  const mi_metadata_v1 table = metadata_table(metadata);
  mi_model* handle = nullptr;
  AbiError error;
  MINFER_TRY(error.status(plugin->arch()->create(plugin->self(), &table, &handle, error.out()), text("architecture {}", plugin->name())));
  if (!handle) return internal_error("architecture {}: create reported success and gave no model", plugin->name());
  auto model = std::make_unique<ProxyModel>(plugin, handle);
  MINFER_TRY(model->read(metadata));
  return std::unique_ptr<ModelArchitecture>(std::move(model));
}

}  // namespace minfer::plugin
