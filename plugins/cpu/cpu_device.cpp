#include "cpu_device.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace minfer::cpu {
namespace {

void check_ranges(const mi_kv_layout& layout, const mi_kv_rows* rows, uint32_t n_ranges) {
  for (uint32_t i = 0; i < n_ranges; ++i)
    if (rows[i].block >= layout.n_blocks || rows[i].first_row > kKvBlock || rows[i].n_rows > kKvBlock - rows[i].first_row)
      sdk::fail(MI_INVALID_ARGUMENT, "KV rows ", i, " do not lie in regions of ", layout.n_blocks, " blocks");
}

// Calls visit(cell, offset of the row among the canonical ones) for every row of the ranges, in their order.
template <class Visit>
void for_each_row(const mi_kv_layout& layout, const mi_kv_rows* rows, uint32_t n_ranges, Visit visit) {
  check_ranges(layout, rows, n_ranges);
  int64_t offset = 0;
  for (uint32_t i = 0; i < n_ranges; ++i)
    for (uint32_t row = 0; row < rows[i].n_rows; ++row, offset += kv_row_bytes(kv_layout_of(layout)))
      visit(int64_t{rows[i].block} * kKvBlock + rows[i].first_row + row, offset);
}

}  // namespace

void CpuBuffer::check(uint64_t offset, uint64_t size_bytes) const {
  if (offset > memory_.size() || size_bytes > memory_.size() - offset)
    sdk::fail(MI_INVALID_ARGUMENT, "bytes ", offset, " + ", size_bytes, " do not lie in a buffer of ", memory_.size());
}

void CpuBuffer::write(uint64_t offset, const void* src, uint64_t size_bytes) {
  check(offset, size_bytes);
  std::memcpy(memory_.data() + offset, src, size_bytes);
}

void CpuBuffer::read(uint64_t offset, void* dst, uint64_t size_bytes) {
  check(offset, size_bytes);
  std::memcpy(dst, memory_.data() + offset, size_bytes);
}

CpuDevice::CpuDevice(unsigned n_threads, Isa isa, std::function<void(const std::string& line)> trace)
    : isa_(isa), trace_(std::move(trace)), kernels_{op_kernels(isa), matmul_kernels(isa)}, team_(n_threads) {}

sdk::DeviceInfo CpuDevice::info() {
  sdk::DeviceInfo info;
  info.name = "cpu";
  info.description = sdk::join(team_.size(), team_.size() == 1 ? " thread, " : " threads, ", isa_name(isa_));
  info.flags = MI_DEVICE_HOST;
  const long pages = sysconf(_SC_PHYS_PAGES), free_pages = sysconf(_SC_AVPHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && free_pages > 0 && page_bytes > 0) {
    info.memory_total_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
    info.memory_free_bytes = static_cast<uint64_t>(free_pages) * static_cast<uint64_t>(page_bytes);
  }
  return info;
}

void CpuDevice::supports(const sdk::GraphView& graph, uint8_t* mask) {
  for (uint32_t n = 0; n < graph.n_nodes(); ++n) mask[n] = node_supported(graph, graph.node(n));
}

std::unique_ptr<sdk::Weights> CpuDevice::import_weights(const sdk::WeightList& list) { return std::make_unique<CpuWeights>(list); }

sdk::KvBytes CpuDevice::kv_region_bytes(const mi_kv_layout& layout) {
  if (!kv_layout_known(layout))
    sdk::fail(MI_UNSUPPORTED, "KV rows of ", layout.n_head_kv, " heads of ", layout.head_dim, " in format ", layout.format);
  const uint64_t bytes = cpu::kv_region_bytes(kv_layout_of(layout), layout.n_blocks);
  return {bytes, bytes};
}

void CpuDevice::kv_copy_rows(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_copy* copies, uint32_t n_copies) {
  const KvLayout mine = kv_layout_of(layout);
  for (uint32_t i = 0; i < n_copies; ++i) {
    const mi_kv_copy& c = copies[i];
    const auto outside = [&](uint32_t block, uint32_t row) {
      return block >= layout.n_blocks || row > MI_KV_BLOCK_POSITIONS || c.n_rows > MI_KV_BLOCK_POSITIONS - row;
    };
    if (outside(c.src_block, c.src_row) || outside(c.dst_block, c.dst_row))
      sdk::fail(MI_INVALID_ARGUMENT, "KV copy ", i, " does not lie in regions of ", layout.n_blocks, " blocks");
  }
  for (uint32_t i = 0; i < n_copies; ++i) {
    const mi_kv_copy& c = copies[i];
    cpu::kv_copy_rows(mine, k.host_ptr(), v.host_ptr(), int64_t{c.src_block} * kKvBlock + c.src_row,
                      int64_t{c.dst_block} * kKvBlock + c.dst_row, c.n_rows);
  }
}

// The row |delta| of the model's own rotation table is the angle; turning back is the same angle with the other sine.
void CpuDevice::kv_rotate(const mi_kv_layout& layout, sdk::Buffer& k, const mi_kv_rotation& rotation, sdk::Weights* weights,
                          const mi_kv_rows* rows, uint32_t n_ranges) {
  const KvLayout mine = kv_layout_of(layout);
  const mi_op_attrs& rope = *rotation.rope;
  const int64_t distance = std::abs(int64_t{rotation.delta});
  if (!kv_layout_known(layout) || rope.head_dim != layout.head_dim || rope.rope_kind > MI_ROPE_INTERLEAVED)
    sdk::fail(MI_UNSUPPORTED, "rotation of kind ", rope.rope_kind, " over ", rope.head_dim, " elements of KV heads of ", layout.head_dim);
  if (distance >= int64_t{layout.n_blocks} * kKvBlock)
    sdk::fail(MI_INVALID_ARGUMENT, "rotation by ", rotation.delta, " positions in regions of ", layout.n_blocks, " blocks");
  const float* factors = nullptr;
  if (rotation.freq_factors != MI_NONE) {
    const CpuWeight* weight = weights ? static_cast<const CpuWeights*>(weights)->find(rotation.freq_factors) : nullptr;
    if (!weight || !weight->vector || weight->cols != layout.head_dim / 2)
      sdk::fail(MI_INVALID_ARGUMENT, "weight ", rotation.freq_factors, " does not hold ", layout.head_dim / 2, " frequency factors");
    factors = weight->vector;
  }
  check_ranges(layout, rows, n_ranges);

  const RopeTable table = rope_tables_.get(distance + 1, layout.head_dim, rope, factors);
  const float* cos = table.cos + distance * table.half_dim;
  std::vector<float> sin(table.sin + distance * table.half_dim, table.sin + (distance + 1) * table.half_dim);
  if (rotation.delta < 0)
    for (float& value : sin) value = -value;
  const KvRotate rotate = table.interleaved ? kernels_.ops.rope_interleaved : kernels_.ops.rope_split;
  for (const bool write : {false, true}) {
    if (write && rotation.check_only) return;
    for (uint32_t i = 0; i < n_ranges; ++i) {
      int64_t bad_row = 0;
      const int64_t cell = int64_t{rows[i].block} * kKvBlock + rows[i].first_row;
      const KvStore state = kv_rotate_rows(mine, k.host_ptr(), cell, rows[i].n_rows, rotate, cos, sin.data(), write, &bad_row);
      if (state != KvStore::kOk)
        sdk::fail(MI_INVALID_ARGUMENT, "block ", rows[i].block, " row ", rows[i].first_row + bad_row, ": a turned key is ",
                  state == KvStore::kNonFinite ? "not finite" : "beyond what the KV format holds (use kv_format f32)");
    }
  }
}

void CpuDevice::kv_export(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges,
                          void* k_rows, void* v_rows) {
  for_each_row(layout, rows, n_ranges, [&](int64_t cell, int64_t offset) {
    kv_read_row(kv_layout_of(layout), k.host_ptr(), v.host_ptr(), cell, static_cast<char*>(k_rows) + offset,
                static_cast<char*>(v_rows) + offset);
  });
}

void CpuDevice::kv_import(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges,
                          const void* k_rows, const void* v_rows) {
  for_each_row(layout, rows, n_ranges, [&](int64_t cell, int64_t offset) {
    kv_write_row(kv_layout_of(layout), k.host_ptr(), v.host_ptr(), cell, static_cast<const char*>(k_rows) + offset,
                 static_cast<const char*>(v_rows) + offset);
  });
}

std::unique_ptr<sdk::Plan> CpuDevice::create_plan(const sdk::GraphView& graph, sdk::Weights* weights) {
  auto* mine = static_cast<CpuWeights*>(weights);
  PhasePlan phases = make_phases(graph, mine, team_.size(), rope_tables_);
  if (trace_) {
    char per_layer[32] = "";
    if (phases.n_layers > 0)
      std::snprintf(per_layer, sizeof per_layer, ", %.1f per layer", static_cast<double>(phases.n_layer_barriers) / phases.n_layers);
    trace_(
        sdk::join("[plan] cpu: graph ", graph.uid(), ": ", phases.phases.size(), " phases, ", phases.n_barriers, " barriers", per_layer));
  }
  return std::make_unique<CpuPlan>(std::move(phases), mine, kernels_, team_, workspace_);
}

}  // namespace minfer::cpu
