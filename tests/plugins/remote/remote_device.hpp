// A device for tests of what lies between devices. It computes with the cpu plugin's code, so its results must have the cpu's bits,
// and is as unhelpful as minfer/abi/backend.h allows: closed memory, work that is done only when someone waits for it, operations
// that it refuses and calls that fail as its options say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cpu_device.hpp"
#include "remote_memory.hpp"
#include "work_queue.hpp"

namespace minfer::remote {

// An operation that the device says it lacks.
struct Refusal {
  uint32_t op = 0;
  uint32_t layer = MI_NONE;  // MI_NONE: in every layer
};

// A failure on demand: the n-th call fails, those before and after it do not. 0: never.
class FailAt {
 public:
  explicit FailAt(uint64_t n = 0) : left_(n) {}
  bool now() { return left_ > 0 && --left_ == 0; }

 private:
  uint64_t left_;
};

struct RemoteOptions {
  unsigned threads = 1;
  uint32_t devices = 1;
  std::vector<Refusal> refuse;
  std::optional<uint64_t> memory_kib;  // free memory it tells of; it does not keep to it
  uint64_t fail_alloc = 0;
  uint64_t fail_plan = 0;
  uint64_t fail_run = 0;
};

class RemoteDevice final : public sdk::Device {
 public:
  RemoteDevice(uint32_t index, const RemoteOptions& options);
  ~RemoteDevice() override;

  sdk::DeviceInfo info() override;
  void supports(const sdk::GraphView& graph, uint8_t* mask) override;
  std::unique_ptr<sdk::Weights> import_weights(const sdk::WeightList& list) override { return cpu_.import_weights(list); }
  std::unique_ptr<sdk::Buffer> alloc(uint64_t size_bytes) override;
  sdk::KvBytes kv_region_bytes(const mi_kv_layout& layout) override { return cpu_.kv_region_bytes(layout); }
  void kv_copy_rows(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_copy* copies, uint32_t n_copies) override;
  void kv_rotate(const mi_kv_layout& layout, sdk::Buffer& k, const mi_kv_rotation& rotation, sdk::Weights* weights, const mi_kv_rows* rows,
                 uint32_t n_ranges) override;
  void kv_export(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges, void* k_rows,
                 void* v_rows) override;
  void kv_import(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges, const void* k_rows,
                 const void* v_rows) override;
  // Buffers of the view are numbers (handles.hpp).
  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView& graph, sdk::Weights* weights) override;
  void sync() override { queue_.wait(); }

  WorkQueue& queue() { return queue_; }
  FailAt& fail_run() { return fail_run_; }

 private:
  const uint32_t index_;
  const RemoteOptions options_;
  FailAt fail_alloc_, fail_plan_, fail_run_;
  cpu::CpuDevice cpu_;
  WorkQueue queue_;
};

}  // namespace minfer::remote
