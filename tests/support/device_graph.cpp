#include "support/device_graph.hpp"

#include <numeric>
#include <stdexcept>

namespace minfer::test {
namespace {
template <class T>
T need(Result<T> result) {
  if (!result.ok()) throw std::logic_error(result.error().text);
  return std::move(*result);
}
}  // namespace

DeviceGraph::DeviceGraph(Device& device, uint32_t n_tokens, const CParams& cparams, uint32_t n_head_kv, uint32_t head_dim)
    : device_(device),
      cparams_(cparams),
      params_(make_graph_params(n_tokens, n_tokens, cparams)),
      layout_{cparams.kv_format, n_head_kv, head_dim, cparams.blocks_per_seq()} {
  input(InputKind::kBlockTable).assign(size_t{cparams.blocks_per_seq()} * cparams.max_seqs, -1);
}

uint32_t DeviceGraph::add_weight(uint32_t roles, const Shape& shape, const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return add_weight(roles, shape, DType::kF32, {bytes.begin(), bytes.end()});
}

uint32_t DeviceGraph::add_weight(uint32_t roles, const Shape& shape, DType dtype, std::vector<std::byte> bytes) {
  WeightInfo info;
  info.dtype = dtype;
  info.shape = shape;
  info.roles = roles;
  infos_.push_back(info);
  data_.push_back(std::move(bytes));
  return static_cast<uint32_t>(infos_.size() - 1);
}

GraphWriter& DeviceGraph::g() {
  if (!writer_) {
    builder_ = std::make_unique<GraphBuilder>(params_, infos_);
    writer_ = std::make_unique<GraphWriter>(*builder_);
  }
  return *writer_;
}

void DeviceGraph::prepare(const std::vector<ValueId>& kept) {
  for (ValueId id : kept) g().output(id);
  graph_ = need(builder_->finish());
  std::vector<WeightSource> sources;
  for (uint32_t id = 0; id < infos_.size(); ++id) sources.push_back({id, &infos_[id], data_[id]});
  weights_ = need(device_.import_weights(sources, [](uint32_t) {}));
  uint64_t end = 0;
  offsets_.clear();
  for (const Value& value : graph_.values) {
    offsets_.push_back(end);
    if (value.kind == ValueKind::kActivation) end += (value.bytes() + 63) / 64 * 64;
  }
  memory_ = need(device_.alloc(end));
  const KvRegionBytes bytes = need(device_.kv_region_bytes(layout_));
  k_ = need(device_.alloc(bytes.k));
  v_ = need(device_.alloc(bytes.v));
  std::vector<SplitView::Place> places;
  std::vector<uint8_t> flags(graph_.values.size(), 0);
  for (ValueId id = 0; id < graph_.values.size(); ++id)
    places.push_back(graph_.values[id].kind == ValueKind::kActivation ? SplitView::Place{memory_.get(), offsets_[id]} : SplitView::Place{});
  for (ValueId id : kept) flags[id] = 1;
  std::vector<NodeId> nodes(graph_.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0u);
  std::vector<KvLayer> kv;
  for (uint32_t layer = 0; layer < 8; ++layer) kv.push_back({layer, layout_, k_.get(), v_.get()});  // one region serves all
  SplitView view;
  view.graph = &graph_;
  view.nodes = nodes;
  view.places = places;
  view.kept = flags;
  view.kv = kv;
  view.uid = 1;
  view.n_ctx = cparams_.n_ctx;
  plan_ = need(device_.create_plan(view, weights_.get()));
}

Status DeviceGraph::run() {
  StepInputs step;
  for (size_t kind = 0; kind < kInputKinds; ++kind) step[kind] = std::as_bytes(std::span<const int32_t>(inputs[kind]));
  const Status started = plan_->run(step, nullptr);
  const Status finished = device_.sync();
  return started.ok() ? finished : started;
}

std::vector<float> DeviceGraph::read(ValueId id) const {
  std::vector<float> values(graph_.values[id].shape.elements());
  if (!memory_->read(offsets_[id], values.data(), values.size() * sizeof(float)).ok()) throw std::logic_error("read failed");
  return values;
}

}  // namespace minfer::test
