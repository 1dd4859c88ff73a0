// The plugin's entry: options, and handles of buffers that are numbers instead of pointers. For tests only: never installed.
//   threads=N  devices=N  memory_kib=N  refuse=OP[@LAYER],...  fail_alloc=N  fail_plan=N  fail_run=N (the N-th call fails, once)
#include <algorithm>

#include "handles.hpp"
#include "remote_device.hpp"

namespace minfer::remote {
namespace {

// ---- options ----
constexpr std::pair<const char*, uint32_t> kOpNames[] = {
    {"get_rows", MI_OP_GET_ROWS},
    {"rms_norm", MI_OP_RMS_NORM},
    {"matmul", MI_OP_MATMUL},
    {"rope", MI_OP_ROPE},
    {"kv_store", MI_OP_KV_STORE},
    {"attention", MI_OP_ATTENTION},
    {"add", MI_OP_ADD},
    {"mul", MI_OP_MUL},
    {"silu", MI_OP_SILU},
    {"silu_mul", MI_OP_SILU_MUL},
    {"fused_qkv", MI_OP_FUSED_QKV},
    {"fused_ffn", MI_OP_FUSED_FFN},
};

std::vector<Refusal> parse_refusals(const std::string& text) {
  std::vector<Refusal> refusals;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t at = item.find('@');
    const auto name = std::find_if(std::begin(kOpNames), std::end(kOpNames), [&](const auto& n) { return n.first == item.substr(0, at); });
    if (name == std::end(kOpNames)) sdk::fail(MI_INVALID_ARGUMENT, "option refuse: no operation is called '", item, "'");
    Refusal refusal{name->second, MI_NONE};
    if (at != std::string::npos) refusal.layer = static_cast<uint32_t>(std::stoul(item.substr(at + 1)));
    refusals.push_back(refusal);
  }
  return refusals;
}

class RemoteBackend final : public sdk::Backend {
 public:
  explicit RemoteBackend(const sdk::Host& host) {
    options_.threads = static_cast<unsigned>(host.option_uint("threads", 1, 64).value_or(1));
    options_.devices = static_cast<uint32_t>(host.option_uint("devices", 1, 8).value_or(1));
    options_.refuse = parse_refusals(host.option("refuse").value_or(""));
    options_.memory_kib = host.option_uint("memory_kib", 0, 1u << 30);
    options_.fail_alloc = host.option_uint("fail_alloc", 1, 1u << 20).value_or(0);
    options_.fail_plan = host.option_uint("fail_plan", 1, 1u << 20).value_or(0);
    options_.fail_run = host.option_uint("fail_run", 1, 1u << 20).value_or(0);
  }
  uint32_t device_count() override { return options_.devices; }
  std::unique_ptr<sdk::Device> open_device(uint32_t index) override { return std::make_unique<RemoteDevice>(index, options_); }

 private:
  RemoteOptions options_;
};

// ---- the table: as the SDK makes it, with numbers for buffers ----
namespace thunks = sdk::backend_thunks;

mi_buffer* as_pointer(mi_buffer* handle) { return reinterpret_cast<mi_buffer*>(Handles::all().find(handle)); }

int32_t buffer_alloc(mi_device* device, uint64_t size_bytes, mi_buffer** out, mi_error* error) noexcept {
  mi_buffer* made = nullptr;
  const int32_t code = thunks::buffer_alloc(device, size_bytes, &made, error);
  if (code == MI_OK) *out = Handles::all().add(sdk::Buffer::from(made));
  return code;
}
void buffer_free(mi_buffer* handle) noexcept {
  mi_buffer* buffer = as_pointer(handle);
  Handles::all().remove(handle);
  thunks::buffer_free(buffer);
}
void* buffer_host_ptr(mi_buffer*) noexcept { return nullptr; }
int32_t buffer_write(mi_buffer* handle, uint64_t offset, const void* src, uint64_t size_bytes, mi_error* error) noexcept {
  return thunks::buffer_write(as_pointer(handle), offset, src, size_bytes, error);
}
int32_t buffer_read(mi_buffer* handle, uint64_t offset, void* dst, uint64_t size_bytes, mi_error* error) noexcept {
  return thunks::buffer_read(as_pointer(handle), offset, dst, size_bytes, error);
}
int32_t kv_copy_rows(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_copy* copies, uint32_t n_copies,
                     mi_error* error) noexcept {
  return thunks::kv_copy_rows(device, layout, as_pointer(k), as_pointer(v), copies, n_copies, error);
}

int32_t kv_rotate(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, const mi_kv_rotation* rotation, mi_weights* weights,
                  const mi_kv_rows* rows, uint32_t n_ranges, mi_error* error) noexcept {
  return thunks::kv_rotate(device, layout, as_pointer(k), rotation, weights, rows, n_ranges, error);
}

int32_t kv_export(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_rows* rows, uint32_t n_ranges,
                  void* k_rows, void* v_rows, mi_error* error) noexcept {
  return thunks::kv_export(device, layout, as_pointer(k), as_pointer(v), rows, n_ranges, k_rows, v_rows, error);
}

int32_t kv_import(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_rows* rows, uint32_t n_ranges,
                  const void* k_rows, const void* v_rows, mi_error* error) noexcept {
  return thunks::kv_import(device, layout, as_pointer(k), as_pointer(v), rows, n_ranges, k_rows, v_rows, error);
}

constexpr mi_backend_v1 make_table() {
  mi_backend_v1 table = thunks::kTable;
  table.buffer_alloc = buffer_alloc;
  table.buffer_free = buffer_free;
  table.buffer_host_ptr = buffer_host_ptr;
  table.buffer_write = buffer_write;
  table.buffer_read = buffer_read;
  table.kv_copy_rows = kv_copy_rows;
  table.kv_export = kv_export;
  table.kv_import = kv_import;
  table.kv_rotate = kv_rotate;
  return table;
}
constexpr mi_backend_v1 kTable = make_table();

}  // namespace
}  // namespace minfer::remote

MINFER_EXPORT_PLUGIN(minfer::remote::RemoteBackend, ::minfer::sdk::Backend, ::minfer::remote::kTable, MI_PLUGIN_BACKEND, MINFER_PLUGIN_NAME,
                     MINFER_PLUGIN_VERSION)
