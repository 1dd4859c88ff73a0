#include "opencl_device.hpp"

#include <algorithm>
#include <cstdlib>

#include "kv_rows.hpp"
#include "planner.hpp"

namespace minfer::opencl {
namespace {

constexpr uint32_t kLargestHead = 256;  // kv.cl: MAX_HEAD

void check_layout(const mi_kv_layout& layout) {
  if (!kv_layout_known(layout))
    sdk::fail(MI_UNSUPPORTED, "KV rows of ", layout.n_head_kv, " heads of ", layout.head_dim, " in format ", layout.format);
}

bool outside(const mi_kv_layout& layout, uint32_t block, uint32_t row, uint32_t n_rows) {
  return block >= layout.n_blocks || row > MI_KV_BLOCK_POSITIONS || n_rows > MI_KV_BLOCK_POSITIONS - row;
}

void check_ranges(const mi_kv_layout& layout, const mi_kv_rows* rows, uint32_t n_ranges) {
  for (uint32_t i = 0; i < n_ranges; ++i)
    if (outside(layout, rows[i].block, rows[i].first_row, rows[i].n_rows))
      sdk::fail(MI_INVALID_ARGUMENT, "KV rows ", i, " do not lie in regions of ", layout.n_blocks, " blocks");
}

cl_mem mem_of(sdk::Buffer& buffer) { return static_cast<OpenclBuffer&>(buffer).mem(); }

}  // namespace

bool kv_layout_known(const mi_kv_layout& layout) {
  const bool format = layout.format == MI_TYPE_F32 || layout.format == MI_TYPE_F16 || layout.format == MI_TYPE_Q8_0;
  return format && layout.head_dim > 0 && layout.head_dim <= kLargestHead &&
         layout.head_dim % (layout.format == MI_TYPE_Q8_0 ? 32 : 2) == 0 && layout.n_head_kv > 0 && layout.n_head_kv <= 65536;
}

OpenclBuffer::OpenclBuffer(OpenclDevice& device, uint64_t size_bytes)
    : device_(device), size_bytes_(size_bytes), mem_(device.context().alloc(size_bytes, "activations or KV")) {}

void OpenclBuffer::check_range(uint64_t offset, uint64_t size_bytes) const {
  if (offset > size_bytes_ || size_bytes > size_bytes_ - offset)
    sdk::fail(MI_INVALID_ARGUMENT, "bytes ", offset, " + ", size_bytes, " do not lie in a buffer of ", size_bytes_);
}

void OpenclBuffer::write(uint64_t offset, const void* src, uint64_t size_bytes) {
  check_range(offset, size_bytes);
  device_.context().write(mem_.get(), offset, src, size_bytes);
}

void OpenclBuffer::read(uint64_t offset, void* dst, uint64_t size_bytes) {
  check_range(offset, size_bytes);
  device_.context().read(mem_.get(), offset, dst, size_bytes);
  device_.sync();  // what failed on the way here is reported by the call that waited
}

OpenclDevice::OpenclDevice(const FoundDevice& device) : found_(device), context_(device) {}

sdk::DeviceInfo OpenclDevice::info() {
  sdk::DeviceInfo info;
  info.name = "opencl";
  info.description = sdk::join(found_.name, ", ", found_.platform_name, ", driver ", device_text(found_.device, CL_DRIVER_VERSION));
  // OpenCL does not tell what others use of it.
  info.memory_total_bytes = info.memory_free_bytes = device_value<cl_ulong>(found_.device, CL_DEVICE_GLOBAL_MEM_SIZE);
  return info;
}

void OpenclDevice::supports(const sdk::GraphView& graph, uint8_t* mask) {
  for (uint32_t n = 0; n < graph.n_nodes(); ++n) mask[n] = node_supported(graph, graph.node(n));
}

std::unique_ptr<sdk::Weights> OpenclDevice::import_weights(const sdk::WeightList& list) {
  return std::make_unique<OpenclWeights>(list, context_);
}

std::unique_ptr<sdk::Buffer> OpenclDevice::alloc(uint64_t size_bytes) { return std::make_unique<OpenclBuffer>(*this, size_bytes); }

sdk::KvBytes OpenclDevice::kv_region_bytes(const mi_kv_layout& layout) {
  check_layout(layout);
  const uint64_t bytes = uint64_t{layout.n_blocks} * MI_KV_BLOCK_POSITIONS * kv_row_bytes(layout);
  return {bytes, bytes};
}

void OpenclDevice::kv_copy_rows(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_copy* copies, uint32_t n_copies) {
  check_layout(layout);
  std::vector<cl_uint> cells;
  for (uint32_t i = 0; i < n_copies; ++i) {
    const mi_kv_copy& c = copies[i];
    if (outside(layout, c.src_block, c.src_row, c.n_rows) || outside(layout, c.dst_block, c.dst_row, c.n_rows))
      sdk::fail(MI_INVALID_ARGUMENT, "KV copy ", i, " does not lie in regions of ", layout.n_blocks, " blocks");
    for (uint32_t row = 0; row < c.n_rows; ++row) {
      cells.push_back(c.src_block * MI_KV_BLOCK_POSITIONS + c.src_row + row);
      cells.push_back(c.dst_block * MI_KV_BLOCK_POSITIONS + c.dst_row + row);
    }
  }
  if (cells.empty()) return;
  const Mem list = context_.alloc_with(cells.data(), cells.size() * sizeof(cl_uint), "a list of KV rows");
  const uint64_t units = uint64_t{layout.n_head_kv} * (layout.head_dim + layout.head_dim / 32);
  context_.enqueue(context_.prepare("kv_copy", layout.format, (units + 63) / 64, 64, 1, mem_of(k), mem_of(v), list.get(),
                                    static_cast<cl_uint>(cells.size() / 2), cl_uint{layout.n_head_kv}, cl_uint{layout.head_dim}));
  context_.flush();
}

// Turning back is the same angle with the other sine.
void OpenclDevice::kv_rotate(const mi_kv_layout& layout, sdk::Buffer& k, const mi_kv_rotation& rotation, sdk::Weights* weights,
                             const mi_kv_rows* rows, uint32_t n_ranges) {
  const mi_op_attrs& rope = *rotation.rope;
  const int64_t distance = std::abs(int64_t{rotation.delta});
  if (!kv_layout_known(layout) || rope.head_dim != layout.head_dim || rope.rope_kind > MI_ROPE_INTERLEAVED)
    sdk::fail(MI_UNSUPPORTED, "rotation of kind ", rope.rope_kind, " over ", rope.head_dim, " elements of KV heads of ", layout.head_dim);
  if (distance >= int64_t{layout.n_blocks} * MI_KV_BLOCK_POSITIONS)
    sdk::fail(MI_INVALID_ARGUMENT, "rotation by ", rotation.delta, " positions in regions of ", layout.n_blocks, " blocks");
  const float* factors = nullptr;
  if (rotation.freq_factors != MI_NONE) {
    const Weight* weight = weights ? static_cast<const OpenclWeights*>(weights)->find(rotation.freq_factors) : nullptr;
    if (!weight || weight->values.size() != layout.head_dim / 2)
      sdk::fail(MI_INVALID_ARGUMENT, "weight ", rotation.freq_factors, " does not hold ", layout.head_dim / 2, " frequency factors");
    factors = weight->values.data();
  }
  check_ranges(layout, rows, n_ranges);
  std::vector<cl_uint> cells;
  for (uint32_t i = 0; i < n_ranges; ++i) {
    for (uint32_t row = 0; row < rows[i].n_rows; ++row) cells.push_back(rows[i].block * MI_KV_BLOCK_POSITIONS + rows[i].first_row + row);
  }
  std::vector<float> cos, sin;
  rope_angles(distance, distance + 1, rope, factors, cos, sin);
  if (rotation.delta < 0)
    for (float& value : sin) value = -value;
  if (cells.empty()) return;

  const Mem list = context_.alloc_with(cells.data(), cells.size() * sizeof(cl_uint), "a list of KV rows");
  const Mem cosines = context_.alloc_with(cos.data(), cos.size() * sizeof(float), "a rotation");
  const Mem sines = context_.alloc_with(sin.data(), sin.size() * sizeof(float), "a rotation");
  const int32_t fine[2] = {0, std::numeric_limits<int32_t>::max()};
  const Mem status = context_.alloc_with(fine, sizeof fine, "a failure report");
  for (const cl_uint write : {0u, 1u}) {
    if (write && rotation.check_only) return;
    context_.enqueue(context_.prepare("kv_rotate", layout.format, layout.n_head_kv, 64, cells.size(), mem_of(k), list.get(), cosines.get(),
                                      sines.get(), cl_uint{rope.rope_kind == MI_ROPE_INTERLEAVED}, cl_uint{layout.n_head_kv},
                                      cl_uint{layout.head_dim}, write, status.get()));
    int32_t found[2];
    context_.read(status.get(), 0, found, sizeof found);
    if (found[0] == 0) continue;
    const cl_uint cell = cells[static_cast<size_t>(found[1])];
    sdk::fail(MI_INVALID_ARGUMENT, "block ", cell / MI_KV_BLOCK_POSITIONS, " row ", cell % MI_KV_BLOCK_POSITIONS, ": a turned key is ",
              found[0] == 1 ? "not finite" : "beyond what the KV format holds (use kv_format f32)");
  }
}

// Whole blocks come to the host, where rows are picked out of them or put into them.
void OpenclDevice::kv_export(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges,
                             void* k_rows, void* v_rows) {
  check_layout(layout);
  check_ranges(layout, rows, n_ranges);
  const uint64_t row_bytes = kv_row_bytes(layout), block_bytes = MI_KV_BLOCK_POSITIONS * row_bytes;
  std::vector<std::byte> block(block_bytes);
  for (const bool is_k : {true, false}) {
    std::byte* out = static_cast<std::byte*>(is_k ? k_rows : v_rows);
    for (uint32_t i = 0; i < n_ranges; ++i) {
      context_.read(mem_of(is_k ? k : v), rows[i].block * block_bytes, block.data(), block_bytes);
      for (uint32_t row = 0; row < rows[i].n_rows; ++row, out += row_bytes)
        read_kv_row(layout, is_k, block.data(), rows[i].first_row + row, out);
    }
  }
  sync();  // reports what failed before
}

void OpenclDevice::kv_import(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges,
                             const void* k_rows, const void* v_rows) {
  check_layout(layout);
  check_ranges(layout, rows, n_ranges);
  const uint64_t row_bytes = kv_row_bytes(layout), block_bytes = MI_KV_BLOCK_POSITIONS * row_bytes;
  std::vector<std::byte> block(block_bytes);
  for (const bool is_k : {true, false}) {
    const cl_mem mem = mem_of(is_k ? k : v);
    const std::byte* in = static_cast<const std::byte*>(is_k ? k_rows : v_rows);
    for (uint32_t i = 0; i < n_ranges; ++i) {
      context_.read(mem, rows[i].block * block_bytes, block.data(), block_bytes);
      for (uint32_t row = 0; row < rows[i].n_rows; ++row, in += row_bytes)
        write_kv_row(layout, is_k, block.data(), rows[i].first_row + row, in);
      context_.write(mem, rows[i].block * block_bytes, block.data(), block_bytes);
    }
  }
}

std::unique_ptr<sdk::Plan> OpenclDevice::create_plan(const sdk::GraphView& graph, sdk::Weights* weights) {
  return make_plan(graph, static_cast<const OpenclWeights*>(weights), context_, quantized_, rope_tables_);
}

void OpenclDevice::throw_failure(const Context::Failure& failure) {
  if (failure.code == 0) return;
  const auto [kind, layer] = split_failure_code(failure.code);
  const std::string where = layer == MI_LAYER_OUTPUT ? std::string() : sdk::join("layer ", layer, ", ");
  const char* what = kind == FailureKind::kActivation    ? "an activation is not finite"
                     : kind == FailureKind::kKvNotFinite ? "a K or V value is not finite"
                                                         : "a K or V value is beyond what the KV format holds (use kv_format f32)";
  sdk::fail(MI_INVALID_ARGUMENT, what, " (", where, "row ", failure.row, ")");
}

}  // namespace minfer::opencl
