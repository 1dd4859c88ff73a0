// A plain scalar backend that is right, or wrong in the one way that its option `fault` names: what the conformance suite must find.
// For tests only.
#include <algorithm>
#include <cmath>
#include <map>

#include "conformance/block_formats.hpp"
#include "conformance/float16.hpp"
#include "faults.hpp"
#include "minfer/plugin/host_device.hpp"

namespace {

namespace sdk = minfer::sdk;
using namespace minfer::conformance;

Fault g_fault = Fault::kNone;  // of the process: it runs one backend
bool faulty(Fault fault) { return g_fault == fault; }

// ---- weights ----

struct FaultyWeights final : sdk::Weights {
  std::map<uint32_t, std::vector<double>> values;
};

std::vector<double> decode_weight(const mi_weight& weight) {
  const sdk::DTypeInfo& info = *sdk::find_dtype(weight.dtype);
  const auto* begin = static_cast<const std::byte*>(weight.data);
  std::vector<std::byte> bytes(begin, begin + weight.size_bytes);
  for (size_t at = 0; at < bytes.size() && is_quantised(weight.dtype); at += info.block_bytes) {
    if (faulty(Fault::kSwappedNibbles) && weight.dtype == MI_TYPE_Q4_0)
      for (size_t i = 2; i < 18; ++i) bytes[at + i] = bytes[at + i] << 4 | bytes[at + i] >> 4;
    if (faulty(Fault::kWrongSubScale) && weight.dtype == MI_TYPE_Q6_K) std::swap(bytes[at + 192 + 6], bytes[at + 192 + 7]);
    std::byte* d = &bytes[at + static_cast<size_t>(scale_places(weight.dtype).d)];
    if (faulty(Fault::kSubnormalScales) && (d[1] & std::byte{0x7c}) == std::byte{0}) d[0] = d[1] = std::byte{0};
  }
  return decode(weight.dtype, bytes, weight.dims[0] * weight.dims[1] * weight.dims[2] * weight.dims[3]);
}

// ---- KV: [cell][n_head_kv * head_dim] of f32 or f16 ----

struct Kv {
  mi_kv_layout layout{};
  char* k = nullptr;
  char* v = nullptr;

  uint64_t width() const { return uint64_t{layout.n_head_kv} * layout.head_dim; }
  uint64_t row_bytes() const { return width() * (layout.format == MI_TYPE_F16 ? 2 : 4); }
  float load(const char* region, uint64_t cell, uint64_t i) const {
    if (layout.format == MI_TYPE_F32) return reinterpret_cast<const float*>(region + cell * row_bytes())[i];
    return static_cast<float>(f16_to_double(reinterpret_cast<const uint16_t*>(region + cell * row_bytes())[i]));
  }
  void store(char* region, uint64_t cell, uint64_t i, float x) const {
    if (layout.format == MI_TYPE_F32) {
      reinterpret_cast<float*>(region + cell * row_bytes())[i] = x;
      return;
    }
    if (!(std::fabs(x) <= 65504)) sdk::fail(MI_INVALID_ARGUMENT, "a key or value does not fit f16");
    uint16_t half = double_to_f16(x);
    if (faulty(Fault::kHalfTruncated) && std::fabs(f16_to_double(half)) > std::fabs(x)) --half;
    reinterpret_cast<uint16_t*>(region + cell * row_bytes())[i] = half;
  }
};

void rotate(float* x, const mi_op_attrs& a, uint32_t n_head, double position, const std::vector<double>* factors) {
  const uint32_t half = a.head_dim / 2;
  const bool split = a.rope_kind == MI_ROPE_SPLIT_HALVES || faulty(Fault::kRopePairing);
  for (uint32_t h = 0; h < n_head; ++h)
    for (uint32_t i = 0; i < half; ++i) {
      float& first = x[h * a.head_dim + (split ? i : 2 * i)];
      float& second = x[h * a.head_dim + (split ? i + half : 2 * i + 1)];
      const double factor = factors && !faulty(Fault::kFactorsIgnored) ? (*factors)[i] : 1;
      const double angle = position * static_cast<double>(a.rope_freq_scale) *
                           std::pow(static_cast<double>(a.rope_freq_base), -2.0 * i / a.head_dim) / factor;
      const double p = first, q = second;
      first = static_cast<float>(p * std::cos(angle) - q * std::sin(angle));
      second = static_cast<float>(p * std::sin(angle) + q * std::cos(angle));
    }
}

// ---- plans ----

struct Operand {
  const mi_value* value = nullptr;  // of the plan's own copy; nullptr: absent
  float* data = nullptr;            // activations
  const std::vector<double>* weight = nullptr;

  uint64_t width() const { return value->dims[0]; }
  uint64_t rows() const { return value->dims[1] * value->dims[2] * value->dims[3]; }
  uint64_t elements() const { return width() * rows(); }
};

struct Node {
  uint32_t op;
  mi_op_attrs attrs;
  std::vector<Operand> in;
  Operand out;
  Kv kv;

  const std::vector<double>* weight(size_t slot) const { return slot < in.size() ? in[slot].weight : nullptr; }
};

class FaultyPlan final : public sdk::Plan {
 public:
  uint32_t n_ctx = 0;
  std::vector<mi_value> values;
  std::vector<Node> nodes;

  void run(const sdk::Step& step) override {
    step_ = &step;
    for (Node& node : nodes) run_node(node);
  }

 private:
  const int32_t* ids(const Node& node, size_t slot) const {
    return static_cast<const int32_t*>(step_->input(node.in[slot].value->index).data);
  }

  void run_node(Node& n) {
    switch (n.op) {
      case MI_OP_GET_ROWS: return get_rows(n);
      case MI_OP_RMS_NORM: return rms_norm(n);
      case MI_OP_MATMUL: return matmul(n, n.in[0].data, 1, n.weight(2), n.out.data);
      case MI_OP_ROPE:
        std::memmove(n.out.data, n.in[0].data, n.out.elements() * 4);
        return rope(n, n.out.data, n.in[0].rows(), n.attrs.n_head, 1, 2);
      case MI_OP_KV_STORE: return store(n, n.in[0].data, n.in[1].data, n.in[0].rows(), 2);
      case MI_OP_ATTENTION: return attention(n);
      case MI_OP_FUSED_QKV: return fused_qkv(n);
      case MI_OP_FUSED_FFN: return fused_ffn(n);
      default: return elements(n);
    }
  }

  void get_rows(const Node& n) {
    for (uint64_t r = 0; r < n.out.rows(); ++r)
      for (uint64_t i = 0; i < n.out.width(); ++i) {
        const uint64_t from = static_cast<uint64_t>(ids(n, 1)[r]) * n.out.width() + i;
        n.out.data[r * n.out.width() + i] = n.in[0].weight ? static_cast<float>((*n.in[0].weight)[from]) : n.in[0].data[from];
      }
  }

  void rms_norm(const Node& n) {
    const uint64_t width = n.out.width();
    for (uint64_t r = 0; r < n.out.rows(); ++r) {
      double sum = 0;
      for (uint64_t i = 0; i < width; ++i) sum += double{n.in[0].data[r * width + i]} * n.in[0].data[r * width + i];
      const double eps = faulty(Fault::kNoEpsilon) ? 1e-30 : n.attrs.eps;
      const double scale = 1 / std::sqrt(sum / static_cast<double>(width) + eps);
      for (uint64_t i = 0; i < width; ++i) {
        const float x = n.in[0].data[r * width + i];
        if (faulty(Fault::kInputModified)) n.in[0].data[r * width + i] = static_cast<float>(x * scale);
        n.out.data[r * width + i] = static_cast<float>(x * scale * (*n.weight(1))[i]);
      }
    }
  }

  void matmul(const Node& n, const float* x, size_t weight_slot, const std::vector<double>* bias, float* out) {
    const Operand& w = n.in[weight_slot];
    const uint64_t width = w.width(), n_out = w.rows(), rows = n.in[0].rows();
    std::vector<float>& first_x = first_x_[{&n, weight_slot}];
    if (faulty(Fault::kStateKept)) {
      if (first_x.empty()) first_x.assign(x, x + width * rows);
      x = first_x.data();
    }
    for (uint64_t r = 0; r < rows; ++r)
      for (uint64_t o = 0; o < n_out; ++o) {
        if (faulty(Fault::kNotWritten) && rows > 8 && r + 1 == rows) continue;
        if (faulty(Fault::kTailRow) && n_out % 16 != 0 && o > 0 && o + 1 == n_out) {
          out[r * n_out + o] = out[r * n_out + o - 1];
          continue;
        }
        const uint64_t end = faulty(Fault::kTailOfK) && width % 64 ? width - 1 : width;
        double sum = 0;
        for (uint64_t i = 0; i < end; ++i) {
          const float value = x[r * width + i];
          if (!(faulty(Fault::kNanSwallowed) && std::isnan(value))) sum += (*w.weight)[o * width + i] * value;
        }
        if (faulty(Fault::kOneElement) && o == 100) sum *= 1.001;
        if (faulty(Fault::kBatchOrder) && r % 2) sum *= 1 + 0x1p-22;
        if (bias && !(faulty(Fault::kNoBias) && rows == 1)) sum += (*bias)[o];
        out[r * n_out + o] = static_cast<float>(sum);
      }
  }

  void rope(const Node& n, float* x, uint64_t rows, uint32_t n_head, size_t positions_slot, size_t factors_slot) {
    for (uint64_t r = 0; r < rows; ++r)
      rotate(x + r * n_head * n.attrs.head_dim, n.attrs, n_head, ids(n, positions_slot)[r], n.weight(factors_slot));
  }

  uint64_t cell(const Node& n, size_t table_slot, int32_t seq, int32_t position) const {
    const Operand& table = n.in[table_slot];
    if (faulty(Fault::kPositionClamped)) position = std::clamp(position, 0, static_cast<int32_t>(n_ctx) - 1);
    if (position < 0 || static_cast<uint32_t>(position) >= n_ctx) sdk::fail(MI_INVALID_ARGUMENT, "position ", position);
    if (static_cast<uint64_t>(seq) >= table.rows()) sdk::fail(MI_INVALID_ARGUMENT, "sequence ", seq);
    const int32_t block = ids(n, table_slot)[static_cast<uint64_t>(seq) * table.width() + static_cast<uint64_t>(position) / 64];
    if (block < 0 || static_cast<uint32_t>(block) >= n.kv.layout.n_blocks)
      sdk::fail(MI_INVALID_ARGUMENT, "no block for position ", position);
    return static_cast<uint64_t>(block) * 64 + static_cast<uint64_t>(position) % 64;
  }

  void store(const Node& n, const float* k, const float* v, uint64_t rows, size_t positions_slot) {
    for (uint64_t r = 0; r < rows; ++r) {
      int32_t seq = ids(n, positions_slot + 1)[r];
      if (faulty(Fault::kPaddingStored)) seq = std::max(seq, 0);
      if (seq < 0) continue;
      const uint64_t at = cell(n, positions_slot + 2, seq, ids(n, positions_slot)[r]);
      for (uint64_t i = 0; i < n.kv.width(); ++i) {
        if (!std::isfinite(k[r * n.kv.width() + i]) || !std::isfinite(v[r * n.kv.width() + i]))
          sdk::fail(MI_INVALID_ARGUMENT, "a key or value is not finite");
        n.kv.store(n.kv.k, at, i, k[r * n.kv.width() + i]);
        n.kv.store(n.kv.v, at, i, v[r * n.kv.width() + i]);
      }
    }
  }

  void attention(Node& n) {
    const mi_op_attrs& a = n.attrs;
    const uint32_t group = a.n_head / a.n_head_kv;
    for (uint64_t r = 0; r < n.out.rows(); ++r) {
      const int32_t seq = ids(n, 2)[r];
      if (seq < 0) continue;
      int32_t last = ids(n, 1)[r];
      if (faulty(Fault::kStaleLength)) last = first_length_.emplace(std::pair{&n, r}, last).first->second;
      if (faulty(Fault::kMaskOffByOne) && last > 0) --last;
      const int32_t window = static_cast<int32_t>(a.window) + (faulty(Fault::kWindowOffByOne) && a.window > 1);
      const int32_t first = a.window ? std::max(0, last + 1 - window) : 0;
      cell(n, 3, seq, last);
      for (uint32_t h = 0; h < a.n_head; ++h) {
        const uint64_t in_row = uint64_t{faulty(Fault::kHeadMapping) ? h % a.n_head_kv : h / group} * a.head_dim;
        const float* q = n.in[0].data + r * n.out.width() + h * a.head_dim;
        std::vector<double> scores, sums(a.head_dim);
        double top = -INFINITY, total = 0;
        for (int32_t p = first; p <= last; ++p) {
          double dot = 0;
          for (uint32_t d = 0; d < a.head_dim; ++d) dot += double{q[d]} * n.kv.load(n.kv.k, cell(n, 3, seq, p), in_row + d);
          scores.push_back(dot * a.attn_scale);
          top = std::max(top, scores.back());
        }
        for (int32_t p = first; p <= last; ++p) {
          const double weight = std::exp(scores[static_cast<size_t>(p - first)] - top);
          total += weight;
          for (uint32_t d = 0; d < a.head_dim; ++d) sums[d] += weight * n.kv.load(n.kv.v, cell(n, 3, seq, p), in_row + d);
        }
        for (uint32_t d = 0; d < a.head_dim; ++d) n.out.data[r * n.out.width() + h * a.head_dim + d] = static_cast<float>(sums[d] / total);
      }
    }
  }

  void fused_qkv(Node& n) {
    const uint64_t rows = n.in[0].rows();
    std::vector<float> k(rows * n.in[2].rows()), v(k.size()), q(n.out.elements());
    matmul(n, n.in[0].data, 2, n.weight(5), k.data());
    rope(n, k.data(), rows, n.attrs.n_head_kv, 7, 10);
    matmul(n, n.in[0].data, 3, n.weight(6), v.data());
    store(n, k.data(), v.data(), rows, 7);
    matmul(n, n.in[0].data, 1, n.weight(4), q.data());
    rope(n, q.data(), rows, n.attrs.n_head, 7, 10);
    std::copy(q.begin(), q.end(), n.out.data);
  }

  static float silu(float x) { return static_cast<float>(x / (1 + std::exp(-double{x}))); }

  void fused_ffn(Node& n) {
    std::vector<float> gate(n.out.elements()), up(gate.size());
    matmul(n, n.in[0].data, faulty(Fault::kGateIsUp) ? 2 : 1, nullptr, gate.data());
    matmul(n, n.in[0].data, faulty(Fault::kGateIsUp) ? 1 : 2, nullptr, up.data());
    for (size_t i = 0; i < gate.size(); ++i) n.out.data[i] = silu(gate[i]) * up[i];
  }

  void elements(const Node& n) {
    const uint64_t count = n.out.elements();
    const uint64_t end = faulty(Fault::kWritesBeyond) ? (count + 15) / 16 * 16 : count;
    const float* a = n.in[0].data;
    const float* b = n.in.back().data;
    for (uint64_t i = 0; i < end; ++i) {
      if (faulty(Fault::kInPlace)) n.out.data[i] = 0;
      switch (n.op) {
        case MI_OP_ADD: n.out.data[i] = a[i] + b[i]; break;
        case MI_OP_MUL: n.out.data[i] = a[i] * b[i]; break;
        case MI_OP_SILU: n.out.data[i] = silu(a[i]); break;
        case MI_OP_SILU_MUL: n.out.data[i] = silu(a[i]) * b[i]; break;
        default: break;
      }
    }
  }

  const sdk::Step* step_ = nullptr;
  std::map<std::pair<const Node*, size_t>, std::vector<float>> first_x_;
  std::map<std::pair<const Node*, uint64_t>, int32_t> first_length_;
};

// ---- the device ----

class FaultyDevice final : public sdk::HostDevice {
 public:
  explicit FaultyDevice(const sdk::Host& host) : HostDevice("faulty", "a scalar backend for tests") {
    const std::string name = host.option("fault").value_or("none");
    const auto* found = std::find_if(std::begin(kFaults), std::end(kFaults), [&](const FaultInfo& f) { return f.name == name; });
    if (found == std::end(kFaults)) sdk::fail(MI_INVALID_ARGUMENT, "option fault: no fault is called '", name, "'");
    g_fault = found->fault;
  }

  void supports(const sdk::GraphView& graph, uint8_t* mask) override {
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) mask[i] = supported(graph, graph.node(i)) || faulty(Fault::kSupportsAll);
  }

  std::unique_ptr<sdk::Weights> import_weights(const sdk::WeightList& list) override {
    auto out = std::make_unique<FaultyWeights>();
    for (uint32_t i = 0; i < list.size(); ++i) {
      if (faulty(Fault::kSourceReadLate)) list.source_done(list[i].id);
      out->values[list[i].id] = decode_weight(list[i]);
      if (!faulty(Fault::kSourceReadLate)) list.source_done(list[i].id);
    }
    return out;
  }

  sdk::KvBytes kv_region_bytes(const mi_kv_layout& layout) override {
    const uint64_t bytes = Kv{layout, nullptr, nullptr}.row_bytes() * layout.n_blocks * 64;
    return {bytes, bytes};
  }

  void kv_copy_rows(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_copy* copies, uint32_t n) override {
    const Kv kv{layout, static_cast<char*>(k.host_ptr()), static_cast<char*>(v.host_ptr())};
    for (uint32_t i = 0; i < n; ++i) {
      check_rows(layout, copies[i].src_block, copies[i].src_row, copies[i].n_rows);
      check_rows(layout, copies[i].dst_block, copies[i].dst_row, copies[i].n_rows);
    }
    for (char* region : {kv.k, kv.v}) {
      const std::vector<char> before(region, region + kv.row_bytes() * layout.n_blocks * 64);
      for (uint32_t i = 0; i < n; ++i)
        for (uint32_t r = 0; r < copies[i].n_rows; ++r) {
          const uint64_t from = (uint64_t{copies[i].src_block} * 64 + copies[i].src_row + r) * kv.row_bytes();
          const uint64_t to = (uint64_t{copies[i].dst_block} * 64 + copies[i].dst_row + r) * kv.row_bytes();
          std::memmove(region + to, faulty(Fault::kCopiesAtOnce) ? &before[from] : region + from, kv.row_bytes());
        }
    }
  }

  void kv_rotate(const mi_kv_layout& layout, sdk::Buffer& k, const mi_kv_rotation& rotation, sdk::Weights* weights, const mi_kv_rows* rows,
                 uint32_t n) override {
    const Kv kv{layout, static_cast<char*>(k.host_ptr()), nullptr};
    const std::vector<double>* factors = nullptr;
    if (rotation.freq_factors != MI_NONE) factors = &static_cast<FaultyWeights*>(weights)->values.at(rotation.freq_factors);
    for (uint32_t i = 0; i < n; ++i) check_rows(layout, rows[i].block, rows[i].first_row, rows[i].n_rows);
    if (rotation.check_only && !faulty(Fault::kCheckWrites)) return;
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t r = 0; r < rows[i].n_rows; ++r) {
        const uint64_t cell = uint64_t{rows[i].block} * 64 + rows[i].first_row + r;
        std::vector<float> x(kv.width());
        for (uint64_t e = 0; e < x.size(); ++e) x[e] = kv.load(kv.k, cell, e);
        rotate(x.data(), *rotation.rope, layout.n_head_kv, faulty(Fault::kRotateSign) ? -rotation.delta : rotation.delta, factors);
        for (uint64_t e = 0; e < x.size(); ++e) kv.store(kv.k, cell, e, x[e]);
      }
  }

  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView& graph, sdk::Weights* weights) override {
    auto plan = std::make_unique<FaultyPlan>();
    plan->n_ctx = graph.n_ctx();
    for (uint32_t id = 0; id < graph.n_values(); ++id) plan->values.push_back(graph.value(id));
    const auto operand = [&](uint32_t id) {
      Operand out;
      if (id == MI_NONE) return out;
      out.value = &plan->values[id];
      if (out.value->kind == MI_VALUE_ACTIVATION) out.data = f32(*out.value);
      if (out.value->kind == MI_VALUE_WEIGHT) out.weight = &static_cast<FaultyWeights*>(weights)->values.at(out.value->index);
      return out;
    };
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) {
      const mi_node& node = graph.node(i);
      Node mine{node.op, *node.attrs, {}, {}, {}};
      for (uint32_t slot = 0; slot < node.n_inputs; ++slot) mine.in.push_back(operand(node.inputs[slot]));
      if (node.n_outputs) mine.out = operand(node.outputs[0]);
      if (const mi_kv_layer* kv = graph.kv_layer(node.layer))
        mine.kv = {kv->layout, static_cast<char*>(sdk::Buffer::from(kv->k)->host_ptr()),
                   static_cast<char*>(sdk::Buffer::from(kv->v)->host_ptr())};
      plan->nodes.push_back(std::move(mine));
    }
    return plan;
  }

 private:
  static void check_rows(const mi_kv_layout& layout, uint32_t block, uint32_t row, uint32_t n) {
    if (block >= layout.n_blocks || row > 64 || n > 64 - row) sdk::fail(MI_INVALID_ARGUMENT, "rows outside the region");
  }

  static bool supported(const sdk::GraphView& graph, const mi_node& node) {
    for (uint32_t i = 0; i < node.n_inputs; ++i) {
      const mi_value* value = graph.input(node, i);
      if (!value || value->kind != MI_VALUE_WEIGHT) continue;
      if (value->dtype == MI_TYPE_I32 || sdk::row_bytes(value->dtype, value->dims[0]) == 0) return false;
    }
    const mi_kv_layer* kv = graph.kv_layer(node.layer);
    const bool kv_ok = kv && (kv->layout.format == MI_TYPE_F32 || kv->layout.format == MI_TYPE_F16);
    switch (node.op) {
      case MI_OP_ROPE: return node.attrs->rope_kind <= MI_ROPE_INTERLEAVED;
      case MI_OP_KV_STORE:
      case MI_OP_ATTENTION: return kv_ok;
      case MI_OP_FUSED_QKV: return kv_ok && node.attrs->rope_kind <= MI_ROPE_INTERLEAVED;
      case MI_OP_GET_ROWS:
      case MI_OP_RMS_NORM:
      case MI_OP_MATMUL:
      case MI_OP_ADD:
      case MI_OP_MUL:
      case MI_OP_SILU:
      case MI_OP_SILU_MUL:
      case MI_OP_FUSED_FFN: return true;
      default: return false;
    }
  }
};

}  // namespace

MINFER_EXPORT_BACKEND(sdk::OneDevice<FaultyDevice>, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
