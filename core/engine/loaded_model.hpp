// A model on its devices: architecture, placement, imported weights. Immutable once loaded; shared by sessions, which may live on
// different threads.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/schedule/placement.hpp"
#include "engine/turn_lock.hpp"

namespace minfer {

class LoadedModel {
 public:
  // weight_data[id]: the bytes of each weight, in the model file or of a constant; they must outlive the model. source_done(id) tells that
  // the bytes of one will not be read again; devices keep a copy and call it in here or in a step, so what it refers to must outlive the
  // model too. Devices and architecture
  // must outlive the model.
  static Result<std::unique_ptr<LoadedModel>> load(ModelArchitecture& architecture, std::vector<Device*> devices, Placement placement,
                                                   std::span<const std::span<const std::byte>> weight_data,
                                                   const std::function<void(uint32_t id)>& source_done);

  // For weights that are read where they lie, for as long as the model lives or until a device has packed them: `intact` tells whether they
  // still are what they were. Asked after each step, on the session's thread, before its results are handed out.
  void watch_sources(std::function<Status()> intact) { sources_intact_ = std::move(intact); }
  Status check_sources() const { return sources_intact_ ? sources_intact_() : Status(); }

  // Thread-safe. The graph as the architecture emits it: not assigned, not fused.
  Result<Graph> build(const GraphParams& params) const;

  const ModelInfo& info() const { return architecture_.info(); }
  const std::vector<WeightInfo>& weight_infos() const { return architecture_.weights(); }  // by weight id
  const std::vector<Device*>& devices() const { return devices_; }
  const Placement& placement() const { return placement_; }
  WeightSet* weights(uint32_t device) const { return weight_sets_[device].get(); }  // nullptr where a device holds none
  // A device takes calls from one thread at a time, and what failed late is reported to whoever calls next. So whoever calls devices of
  // the model holds this, from the first call to the sync behind the last: a session for a whole step, a removal, its end.
  TurnLock& device_turn() const { return device_turn_; }

 private:
  LoadedModel(ModelArchitecture& architecture, std::vector<Device*> devices, Placement placement)
      : architecture_(architecture), devices_(std::move(devices)), placement_(std::move(placement)) {}

  ModelArchitecture& architecture_;
  std::vector<Device*> devices_;
  Placement placement_;
  std::vector<std::unique_ptr<WeightSet>> weight_sets_;
  std::function<Status()> sources_intact_;
  mutable std::mutex build_mutex_;
  mutable TurnLock device_turn_;
};

}  // namespace minfer
