#include "runtime/graph_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gguf/types.hpp"

namespace minfer {
namespace {

using Json = nlohmann::ordered_json;

std::string dtype_name(DType dtype) {
  const auto number = static_cast<uint32_t>(dtype);
  const gguf::TypeInfo* info = gguf::find_type(number);
  return info ? std::string(info->name) : text("type {}", number);
}

Json shape_json(const Shape& shape) { return std::vector<uint64_t>(shape.dims.begin(), shape.dims.begin() + shape.n_dims); }

std::string value_name(const Graph& graph, const LoadedModel& model, ValueId id) {
  const Value& value = graph.values[id];
  if (value.kind == ValueKind::kInput) return std::string(input_name(static_cast<InputKind>(value.index)));
  if (value.kind == ValueKind::kWeight) return model.weight_infos()[value.index].name;
  const std::vector<ValueId>& outputs = graph.nodes[value.producer].outputs;
  const auto slot = std::find(outputs.begin(), outputs.end(), id) - outputs.begin();
  return slot == 0 ? text("n{}", value.producer) : text("n{}.{}", value.producer, slot);
}

std::string place_name(uint32_t layer) {
  if (layer == kEmbeddingLayer) return "embedding";
  if (layer == kOutputLayer) return "output";
  return text("layer {}", layer);
}

// The attributes that an operation uses: those that are not 0.
Json attrs_json(const Node& node) {
  const OpAttrs& a = node.attrs;
  Json meta = Json::object();
  const auto put = [&](const char* key, auto value) {
    if (value != 0) meta[key] = value;
  };
  put("n_head", a.n_head);
  put("n_head_kv", a.n_head_kv);
  put("head_dim", a.head_dim);
  put("eps", a.eps);
  put("rope_freq_base", a.rope_freq_base);
  put("rope_freq_scale", a.rope_freq_scale);
  if (a.rope_freq_base != 0) meta["rope_kind"] = a.rope_kind == RopeKind::kInterleaved ? "interleaved" : "split_halves";
  put("attn_scale", a.attn_scale);
  put("window", a.window);
  put("view_offset", a.view_offset);
  return meta;
}

}  // namespace

std::vector<std::string> node_devices(const CompiledGraph& compiled, const LoadedModel& model) {
  std::vector<std::string> names;
  for (const uint32_t device : compiled.node_device) names.push_back(model.devices()[device]->info().name);
  return names;
}

std::string dump_json(const CompiledGraph& compiled, const LoadedModel& model, std::string_view model_name) {
  const Graph& graph = compiled.graph;
  const std::vector<std::string> devices = node_devices(compiled, model);
  Json json{{"format", "minfer-graph"}, {"version", 1}, {"model", model_name}};
  json["kind"] = compiled.params.gtype == GraphType::kDecode ? "decode" : "prefill";
  json["n_tokens"] = compiled.params.n_tokens;
  json["n_out"] = compiled.params.n_out;
  json["inputs"] = Json::array();
  for (const ValueId id : graph.inputs)
    json["inputs"].push_back({{"name", value_name(graph, model, id)},
                              {"shape", shape_json(graph.values[id].shape)},
                              {"dtype", dtype_name(graph.values[id].dtype)}});
  json["outputs"] = Json::array();
  for (const ValueId id : graph.outputs) json["outputs"].push_back(value_name(graph, model, id));
  json["nodes"] = Json::array();
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    Json item{{"id", n}, {"name", text("n{}", n)}, {"op", op_info(node.op).name}, {"detail", place_name(node.layer)}};
    item["shape"] = node.outputs.empty() ? Json() : shape_json(graph.values[node.outputs[0]].shape);
    item["dtype"] = node.outputs.empty() ? Json() : Json(dtype_name(graph.values[node.outputs[0]].dtype));
    item["backend"] = devices[n];
    item["src"] = Json::array();
    for (const ValueId id : node.inputs) item["src"].push_back(id == kNone ? Json() : Json(value_name(graph, model, id)));
    item["meta"] = attrs_json(node);
    json["nodes"].push_back(std::move(item));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace minfer
