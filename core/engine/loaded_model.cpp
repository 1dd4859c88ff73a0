#include "engine/loaded_model.hpp"

namespace minfer {

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(ModelArchitecture& architecture, std::vector<Device*> devices, Placement placement,
                                                       std::span<const std::span<const std::byte>> weight_data,
                                                       const std::function<void(uint32_t id)>& source_done) {
  std::unique_ptr<LoadedModel> model(new LoadedModel(architecture, std::move(devices), std::move(placement)));
  const std::vector<WeightInfo>& infos = architecture.weights();
  if (weight_data.size() != infos.size())
    return internal_error("data of {} weights given, the model has {}", weight_data.size(), infos.size());
  for (uint32_t d = 0; d < model->devices_.size(); ++d) {
    std::vector<WeightSource> sources;
    for (uint32_t id = 0; id < infos.size(); ++id)
      if (model->placement_.holds(d, id)) sources.push_back({id, &infos[id], weight_data[id]});
    model->weight_sets_.emplace_back();
    if (sources.empty()) continue;
    auto imported = model->devices_[d]->import_weights(sources, source_done);
    if (!imported.ok()) return imported.error().in(text("importing weights on {}", model->devices_[d]->info().name));
    model->weight_sets_.back() = std::move(*imported);
  }
  return model;
}

Result<Graph> LoadedModel::build(const GraphParams& params) const {
  const std::lock_guard lock(build_mutex_);
  return build_graph(architecture_, params);
}

}  // namespace minfer
