// One problem on one device, run as hostile as the contract of minfer/abi/backend.h allows: every value stands between guard bands,
// all memory holds poison before a run, sources must not change, and the bytes of a weight are spoilt as soon as a backend says that it
// is done with them.
#pragma once

#include <memory>

#include "conformance/problem.hpp"

namespace minfer::conformance {

// K and V of one layer on a device. Fresh memory holds NaN of every format.
struct DeviceKv {
  KvLayout layout;
  std::unique_ptr<Buffer> k, v;

  KvLayer layer(uint32_t number) const { return {number, layout, k.get(), v.get()}; }
};
Result<DeviceKv> make_kv(Device& device, const KvLayout& layout);
using DeviceKvs = std::map<uint32_t, DeviceKv>;  // by layer

Result<std::vector<std::byte>> read_all(const Buffer& buffer);

class Trial {
 public:
  // The problem, the KV and the device outlive the trial. Data of the problem may change between runs, its nodes may not.
  Trial(Device& device, const Problem& problem, const DeviceKvs* kvs = nullptr) : device_(device), problem_(problem), kvs_(kvs) {}
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Whether the device says yes to every node. Asked without memory, as the engine does.
  Result<bool> supported();
  // supported(), weights, memory and plan. kUnsupported only where the device says no to a node; whatever else fails is an error of the
  // backend, since it said yes.
  Status prepare();
  // A new plan of the same nodes at other places: what the engine does when the scratch memory of a session has moved.
  Status move();
  // Fills the memory, runs, waits, and checks what may not have changed. The status of the run itself is left in `run_status` where that
  // is given; it is an error otherwise.
  Status run(Status* run_status = nullptr, const StopCheck* should_stop = nullptr);

  // Of the last run.
  std::span<const float> output(ValueId value) const;
  Device& device() { return device_; }

 private:
  Status plan();
  uint64_t place_apart(uint64_t begin);
  uint64_t place_packed(uint64_t begin);
  SplitView view() const;
  Status check_sources_done() const;
  Status check_untouched(const std::vector<std::byte>& after) const;

  Device& device_;
  const Problem& problem_;
  const DeviceKvs* kvs_;
  std::vector<std::vector<std::byte>> weight_bytes_;  // what the backend reads: spoilt when it is done
  std::vector<WeightInfo> weight_infos_;
  std::vector<int> times_done_;  // calls of source_done by weight; the last entry counts those for no weight
  std::unique_ptr<WeightSet> weights_;
  std::unique_ptr<Buffer> memory_;
  std::vector<SplitView::Place> places_;
  std::vector<uint8_t> kept_;
  std::vector<KvLayer> kv_layers_;
  std::unique_ptr<Plan> plan_;
  uint64_t uid_ = 0;
  uint64_t generation_ = 0;
  std::vector<std::byte> result_;  // memory_ after the run
};

}  // namespace minfer::conformance
