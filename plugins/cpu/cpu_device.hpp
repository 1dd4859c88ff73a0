// The processor as one device: its threads, kernels and memory.
#pragma once

#include <functional>
#include <string>

#include "cpu_features.hpp"
#include "cpu_plan.hpp"

namespace minfer::cpu {

class CpuBuffer final : public sdk::Buffer {
 public:
  explicit CpuBuffer(uint64_t size_bytes) : memory_(size_bytes) {}
  void* host_ptr() noexcept override { return memory_.data(); }
  void write(uint64_t offset, const void* src, uint64_t size_bytes) override;
  void read(uint64_t offset, void* dst, uint64_t size_bytes) override;

 private:
  void check(uint64_t offset, uint64_t size_bytes) const;
  PageMemory memory_;
};

class CpuDevice final : public sdk::Device {
 public:
  // trace: gets a line about each plan that is made; may be empty.
  CpuDevice(unsigned n_threads, Isa isa, std::function<void(const std::string& line)> trace = {});

  sdk::DeviceInfo info() override;
  void supports(const sdk::GraphView& graph, uint8_t* mask) override;
  std::unique_ptr<sdk::Weights> import_weights(const sdk::WeightList& list) override;
  std::unique_ptr<sdk::Buffer> alloc(uint64_t size_bytes) override { return std::make_unique<CpuBuffer>(size_bytes); }
  sdk::KvBytes kv_region_bytes(const mi_kv_layout& layout) override;
  void kv_copy_rows(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_copy* copies, uint32_t n_copies) override;
  void kv_rotate(const mi_kv_layout& layout, sdk::Buffer& k, const mi_kv_rotation& rotation, sdk::Weights* weights, const mi_kv_rows* rows,
                 uint32_t n_ranges) override;
  void kv_export(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges, void* k_rows,
                 void* v_rows) override;
  void kv_import(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges, const void* k_rows,
                 const void* v_rows) override;
  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView& graph, sdk::Weights* weights) override;

 private:
  Isa isa_;
  std::function<void(const std::string& line)> trace_;
  Kernels kernels_;
  ThreadTeam team_;
  Workspace workspace_;
  RopeTables rope_tables_;
};

}  // namespace minfer::cpu
