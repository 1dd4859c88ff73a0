#include "support/reference_device.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace minfer::test {
namespace {

const float kFresh = std::bit_cast<float>(0x7fa00000u);  // signalling NaN

bool hits(int& countdown) { return countdown >= 0 && countdown-- == 0; }

class ReferenceBuffer final : public Buffer {
 public:
  ReferenceBuffer(uint64_t size_bytes, ReferenceDevice& device)
      : size_bytes_(size_bytes), memory_((size_bytes + 3) / 4, kFresh), device_(device) {}

  uint64_t size_bytes() const override { return size_bytes_; }
  void* host_ptr() const override { return device_.options().host ? memory() : nullptr; }
  Status write(uint64_t offset, const void* src, uint64_t size) override {
    if (offset > size_bytes_ || size > size_bytes_ - offset) return invalid("write beyond the buffer");
    ++device_.counters.writes;
    device_.flush();
    std::memcpy(reinterpret_cast<std::byte*>(memory()) + offset, src, size);
    return {};
  }
  Status read(uint64_t offset, void* dst, uint64_t size) const override {
    if (offset > size_bytes_ || size > size_bytes_ - offset) return invalid("read beyond the buffer");
    ++device_.counters.reads;
    device_.flush();
    std::memcpy(dst, reinterpret_cast<const std::byte*>(memory()) + offset, size);
    return {};
  }
  float* memory() const { return const_cast<float*>(memory_.data()); }

 private:
  uint64_t size_bytes_;
  std::vector<float> memory_;
  ReferenceDevice& device_;
};

class ReferenceWeights final : public WeightSet {
 public:
  uint64_t own_bytes() const override {
    uint64_t bytes = 0;
    for (const auto& [id, values] : values_) bytes += values.size() * 4;
    return bytes;
  }
  std::map<uint32_t, std::vector<float>> values_;
};

struct Operand {
  ValueKind kind = ValueKind::kActivation;
  uint32_t input = 0;
  float* data = nullptr;
  uint64_t elements = 0;
  uint64_t width = 0;
  uint64_t rows = 0;
};

struct Step {
  Op op;
  uint32_t layer;
  OpAttrs attrs;
  std::vector<std::optional<Operand>> in;
  Operand out;
  bool has(size_t slot) const { return slot < in.size() && in[slot].has_value(); }
  const Operand& operator[](size_t slot) const { return *in[slot]; }
  const float* data(size_t slot) const { return has(slot) ? in[slot]->data : nullptr; }
};

void matmul_row(const float* x, const float* w, const float* bias, uint64_t n_in, uint64_t n_out, float* y) {
  for (uint64_t o = 0; o < n_out; ++o) {
    double sum = bias ? bias[o] : 0;
    for (uint64_t i = 0; i < n_in; ++i) sum += static_cast<double>(w[o * n_in + i]) * x[i];
    y[o] = static_cast<float>(sum);
  }
}

void rope_row(const float* x, float* y, const OpAttrs& a, uint32_t n_head, int32_t position, const float* factors) {
  const uint32_t half = a.head_dim / 2;
  for (uint32_t h = 0; h < n_head; ++h) {
    for (uint32_t i = 0; i < half; ++i) {
      const uint32_t first = h * a.head_dim + (a.rope_kind == RopeKind::kSplitHalves ? i : 2 * i);
      const uint32_t second = first + (a.rope_kind == RopeKind::kSplitHalves ? half : 1);
      const double angle = position * static_cast<double>(a.rope_freq_scale) *
                           std::pow(static_cast<double>(a.rope_freq_base), -2.0 * i / a.head_dim) / (factors ? factors[i] : 1.0);
      const double p = x[first];
      const double q = x[second];
      y[first] = static_cast<float>(p * std::cos(angle) - q * std::sin(angle));
      y[second] = static_cast<float>(p * std::sin(angle) + q * std::cos(angle));
    }
  }
}

double silu(double x) { return x / (1 + std::exp(-x)); }

class ReferencePlan final : public Plan {
 public:
  explicit ReferencePlan(ReferenceDevice& device) : device_(device) { ++device_.counters.live_plans; }
  ~ReferencePlan() override {
    device_.flush();
    --device_.counters.live_plans;
  }

  Status init(const SplitView& view, const ReferenceWeights* weights) {
    const Graph& graph = *view.graph;
    n_ctx_ = view.n_ctx;
    for (const KvLayer& layer : view.kv) kv_[layer.layer] = layer;
    uint64_t widest = 1;
    for (NodeId n : view.nodes) {
      const Node& node = graph.nodes[n];
      Step step{node.op, node.layer, node.attrs, {}, {}};
      for (ValueId id : node.inputs) {
        step.in.emplace_back();
        if (id == kNone) continue;
        MINFER_ASSIGN(step.in.back(), operand(view, id, weights));
      }
      if (!node.outputs.empty()) {
        const ValueId id = node.outputs[0];
        if (device_.options().private_values && !view.kept[id]) own_[id].assign(graph.values[id].shape.elements(), kFresh);
        MINFER_ASSIGN(step.out, operand(view, id, weights));
      }
      for (const auto& in : step.in)
        if (in && in->kind == ValueKind::kWeight) widest = std::max(widest, in->rows);
      steps_.push_back(std::move(step));
    }
    a_.resize(widest);
    b_.resize(widest);
    scores_.resize(n_ctx_);
    return {};
  }

  Status run(const StepInputs& inputs, const StopCheck* should_stop) override {
    ++device_.counters.runs;
    if (hits(device_.fail_run)) return make_error(ErrorCode::kDeviceLost, "injected failure of a run");
    if (!device_.options().deferred) return run_now(inputs, should_stop);
    std::array<std::vector<std::byte>, kInputKinds> copies;  // the host fills its own for the next step
    for (size_t kind = 0; kind < kInputKinds; ++kind) copies[kind].assign(inputs[kind].begin(), inputs[kind].end());
    device_.defer([this, copies = std::move(copies)] {
      StepInputs late;
      for (size_t kind = 0; kind < kInputKinds; ++kind) late[kind] = copies[kind];
      return run_now(late, nullptr);
    });
    return {};
  }

 private:
  Status run_now(const StepInputs& inputs, const StopCheck* should_stop) {
    for (const Step& step : steps_) {
      if (should_stop && (*should_stop)()) return make_error(ErrorCode::kCancelled, "stopped");
      for (const auto& in : step.in)
        if (in && in->kind == ValueKind::kInput && inputs[in->input].size() != in->elements * 4)
          return invalid("graph input {} has {} bytes, expects {}", in->input, inputs[in->input].size(), in->elements * 4);
      MINFER_TRY(run_step(step, inputs));
      ++device_.counters.nodes;
      device_.counters.fused_nodes += step.op >= Op::kSiluMul;
    }
    return {};
  }

  Result<Operand> operand(const SplitView& view, ValueId id, const ReferenceWeights* weights) {
    const Value& value = view.graph->values[id];
    Operand out{value.kind, value.index, nullptr, value.shape.elements(), value.shape.dims[0], value.shape.rows()};
    if (value.kind == ValueKind::kWeight) {
      if (!weights || !weights->values_.count(value.index))
        return internal_error("weight {} is not on {}", value.index, device_.info().name);
      out.data = const_cast<float*>(weights->values_.at(value.index).data());
    } else if (value.kind == ValueKind::kActivation) {
      if (const auto own = own_.find(id); own != own_.end()) {
        out.data = own->second.data();
        return out;
      }
      const SplitView::Place& place = view.places[id];
      if (!place.buffer) return internal_error("value {} has no place on {}", id, device_.info().name);
      if (place.offset_bytes % 4 || place.offset_bytes + value.bytes() > place.buffer->size_bytes())
        return internal_error("value {} of {} bytes at {} does not fit its buffer", id, value.bytes(), place.offset_bytes);
      out.data = reference_memory(*place.buffer) + place.offset_bytes / 4;
    }
    return out;
  }

  static std::span<const int32_t> ids(const Operand& operand, const StepInputs& inputs) {
    return {reinterpret_cast<const int32_t*>(inputs[operand.input].data()), operand.elements};
  }

  // First element of the row of a position in K or V.
  Result<uint64_t> cell(const Step& step, const Operand& table, const StepInputs& inputs, int32_t seq, int32_t position) const {
    const KvLayout& layout = kv_.at(step.layer).layout;
    if (position < 0 || static_cast<uint32_t>(position) >= n_ctx_) return invalid("position {} is beyond n_ctx {}", position, n_ctx_);
    if (seq < 0 || static_cast<uint64_t>(seq) >= table.rows) return invalid("sequence {} is not in the block table", seq);
    const int32_t block = ids(table, inputs)[static_cast<uint64_t>(seq) * table.width + static_cast<uint32_t>(position) / 64];
    if (block < 0 || static_cast<uint32_t>(block) >= layout.n_blocks)
      return invalid("position {} of sequence {} has no block", position, seq);
    return (static_cast<uint64_t>(block) * 64 + static_cast<uint32_t>(position) % 64) * layout.n_head_kv * layout.head_dim;
  }

  Status store_row(const Step& step, const float* k, const float* v, int32_t position, int32_t seq, const Operand& table,
                   const StepInputs& inputs) {
    if (seq == -1) return {};
    const KvLayer& kv = kv_.at(step.layer);
    MINFER_ASSIGN(const uint64_t at, cell(step, table, inputs, seq, position));
    const uint64_t bytes = uint64_t{kv.layout.n_head_kv} * kv.layout.head_dim * 4;
    std::memcpy(reference_memory(*kv.k) + at, k, bytes);
    std::memcpy(reference_memory(*kv.v) + at, v, bytes);
    return {};
  }

  Status attention(const Step& s, const StepInputs& inputs) {
    const KvLayer& kv = kv_.at(s.layer);
    const OpAttrs& a = s.attrs;
    for (uint64_t r = 0; r < s.out.rows; ++r) {
      const int32_t position = ids(s[1], inputs)[r];
      const int32_t seq = ids(s[2], inputs)[r];
      if (seq == -1) continue;
      const int32_t first = a.window ? std::max(0, position + 1 - static_cast<int32_t>(a.window)) : 0;
      for (uint32_t h = 0; h < a.n_head; ++h) {
        const float* q = s.data(0) + r * s[0].width + h * a.head_dim;
        const uint64_t head_at = uint64_t{h / (a.n_head / a.n_head_kv)} * a.head_dim;
        double top = -INFINITY;
        for (int32_t p = first; p <= position; ++p) {
          MINFER_ASSIGN(const uint64_t at, cell(s, s[3], inputs, seq, p));
          const float* k = reference_memory(*kv.k) + at + head_at;
          double dot = 0;
          for (uint32_t d = 0; d < a.head_dim; ++d) dot += static_cast<double>(q[d]) * k[d];
          scores_[static_cast<size_t>(p)] = dot * a.attn_scale;
          top = std::max(top, scores_[static_cast<size_t>(p)]);
        }
        double total = 0;
        for (int32_t p = first; p <= position; ++p) {
          double& score = scores_[static_cast<size_t>(p)];
          score = std::exp(score - top);
          total += score;
        }
        for (uint32_t d = 0; d < a.head_dim; ++d) {
          double sum = 0;
          for (int32_t p = first; p <= position; ++p) {
            MINFER_ASSIGN(const uint64_t at, cell(s, s[3], inputs, seq, p));
            sum += scores_[static_cast<size_t>(p)] * reference_memory(*kv.v)[at + head_at + d];
          }
          s.out.data[r * s.out.width + h * a.head_dim + d] = static_cast<float>(sum / total);
        }
      }
    }
    return {};
  }

  Status fused_qkv(const Step& s, const StepInputs& inputs) {
    const uint64_t n_in = s[0].width;
    for (uint64_t r = 0; r < s.out.rows; ++r) {
      const float* x = s.data(0) + r * n_in;
      const int32_t position = ids(s[7], inputs)[r];
      float* q = s.out.data + r * s.out.width;
      matmul_row(x, s.data(1), s.data(4), n_in, s[1].rows, q);
      rope_row(q, q, s.attrs, s.attrs.n_head, position, s.data(10));
      matmul_row(x, s.data(2), s.data(5), n_in, s[2].rows, a_.data());
      rope_row(a_.data(), a_.data(), s.attrs, s.attrs.n_head_kv, position, s.data(10));
      matmul_row(x, s.data(3), s.data(6), n_in, s[3].rows, b_.data());
      MINFER_TRY(store_row(s, a_.data(), b_.data(), position, ids(s[8], inputs)[r], s[9], inputs));
    }
    return {};
  }

  Status run_step(const Step& s, const StepInputs& inputs) {
    float* y = s.out.data;
    switch (s.op) {
      case Op::kGetRows:
        for (uint64_t r = 0; r < s.out.rows; ++r) {
          const int32_t id = ids(s[1], inputs)[r];
          if (id < 0 || static_cast<uint64_t>(id) >= s[0].rows) return invalid("row {} of {}", id, s[0].rows);
          std::memcpy(y + r * s.out.width, s.data(0) + static_cast<uint64_t>(id) * s.out.width, s.out.width * 4);
        }
        return {};
      case Op::kRmsNorm:
        for (uint64_t r = 0; r < s.out.rows; ++r) {
          const float* x = s.data(0) + r * s.out.width;
          double sum = 0;
          for (uint64_t i = 0; i < s.out.width; ++i) sum += static_cast<double>(x[i]) * x[i];
          const double scale = 1 / std::sqrt(sum / static_cast<double>(s.out.width) + s.attrs.eps);
          for (uint64_t i = 0; i < s.out.width; ++i) y[r * s.out.width + i] = static_cast<float>(x[i] * scale * s.data(1)[i]);
        }
        return {};
      case Op::kMatMul:
        for (uint64_t r = 0; r < s.out.rows; ++r)
          matmul_row(s.data(0) + r * s[0].width, s.data(1), s.data(2), s[0].width, s.out.width, y + r * s.out.width);
        return {};
      case Op::kRope:
        for (uint64_t r = 0; r < s.out.rows; ++r)
          rope_row(s.data(0) + r * s.out.width, y + r * s.out.width, s.attrs, s.attrs.n_head, ids(s[1], inputs)[r], s.data(2));
        return {};
      case Op::kKvStore:
        for (uint64_t r = 0; r < s[0].rows; ++r)
          MINFER_TRY(store_row(s, s.data(0) + r * s[0].width, s.data(1) + r * s[1].width, ids(s[2], inputs)[r], ids(s[3], inputs)[r], s[4],
                               inputs));
        return {};
      case Op::kAttention: return attention(s, inputs);
      case Op::kAdd:
        for (uint64_t i = 0; i < s.out.elements; ++i) y[i] = s.data(0)[i] + s.data(1)[i];
        return {};
      case Op::kMul:
        for (uint64_t i = 0; i < s.out.elements; ++i) y[i] = s.data(0)[i] * s.data(1)[i];
        return {};
      case Op::kSilu:
        for (uint64_t i = 0; i < s.out.elements; ++i) y[i] = static_cast<float>(silu(s.data(0)[i]));
        return {};
      case Op::kView: return internal_error("a view reached a device");
      case Op::kSiluMul:
        for (uint64_t i = 0; i < s.out.elements; ++i) y[i] = static_cast<float>(silu(s.data(0)[i])) * s.data(1)[i];
        return {};
      case Op::kFusedQkv: return fused_qkv(s, inputs);
      case Op::kFusedFfn:
        for (uint64_t r = 0; r < s.out.rows; ++r) {
          const float* x = s.data(0) + r * s[0].width;
          matmul_row(x, s.data(1), nullptr, s[0].width, s.out.width, a_.data());
          matmul_row(x, s.data(2), nullptr, s[0].width, s.out.width, b_.data());
          for (uint64_t i = 0; i < s.out.width; ++i) y[r * s.out.width + i] = static_cast<float>(silu(a_[i])) * b_[i];
        }
        return {};
    }
    return unsupported("operation {}", static_cast<uint32_t>(s.op));
  }

  ReferenceDevice& device_;
  uint32_t n_ctx_ = 0;
  std::map<uint32_t, KvLayer> kv_;
  std::map<ValueId, std::vector<float>> own_;
  std::vector<Step> steps_;
  std::vector<float> a_, b_;
  std::vector<double> scores_;
};

}  // namespace

float* reference_memory(Buffer& buffer) { return static_cast<ReferenceBuffer&>(buffer).memory(); }

ReferenceDevice::ReferenceDevice(ReferenceOptions options) : options_(std::move(options)) {
  info_.name = options_.name;
  info_.host = options_.host;
  info_.memory_total_bytes = info_.memory_free_bytes = options_.memory_free_bytes;
}

Result<std::vector<bool>> ReferenceDevice::supports(const SplitView& view) {
  ++counters.supports;
  std::vector<bool> mask;
  for (NodeId n : view.nodes) mask.push_back(!options_.supports || options_.supports(*view.graph, view.graph->nodes[n]));
  return mask;
}

Result<std::unique_ptr<WeightSet>> ReferenceDevice::import_weights(std::span<const WeightSource> weights,
                                                                   const std::function<void(uint32_t id)>& source_done) {
  auto set = std::make_unique<ReferenceWeights>();
  for (const WeightSource& source : weights) {
    if (source.info->dtype != DType::kF32 || source.data.size() != source.info->shape.elements() * 4)
      return unsupported("weight {} is not f32 of its shape", source.info->name);
    std::vector<float>& values = set->values_[source.id];
    values.resize(source.info->shape.elements());
    std::memcpy(values.data(), source.data.data(), source.data.size());
    if (source_done) source_done(source.id);
  }
  return std::unique_ptr<WeightSet>(std::move(set));
}

Result<std::unique_ptr<Buffer>> ReferenceDevice::alloc(uint64_t size_bytes) {
  if (hits(fail_alloc)) return make_error(ErrorCode::kOutOfMemory, "injected failure of an allocation");
  ++counters.allocs;
  return std::unique_ptr<Buffer>(std::make_unique<ReferenceBuffer>(size_bytes, *this));
}

Result<KvRegionBytes> ReferenceDevice::kv_region_bytes(const KvLayout& layout) {
  if (layout.format != KvFormat::kF32) return unsupported("the reference device keeps KV in f32");
  const uint64_t bytes = uint64_t{layout.n_blocks} * 64 * layout.n_head_kv * layout.head_dim * 4;
  return KvRegionBytes{bytes, bytes};
}

Status ReferenceDevice::kv_copy_rows(const KvLayer& layer, std::span<const KvRowCopy> copies) {
  if (hits(fail_kv_copy)) return make_error(ErrorCode::kDeviceLost, "injected failure of a KV copy");
  ++counters.kv_copies;
  flush();
  const uint64_t width = uint64_t{layer.layout.n_head_kv} * layer.layout.head_dim;
  for (const KvRowCopy& copy : copies) {
    if (copy.src_block >= layer.layout.n_blocks || copy.dst_block >= layer.layout.n_blocks || copy.src_row + copy.n_rows > 64 ||
        copy.dst_row + copy.n_rows > 64)
      return invalid("KV copy outside the region");
    for (Buffer* region : {layer.k, layer.v})
      std::memmove(reference_memory(*region) + (uint64_t{copy.dst_block} * 64 + copy.dst_row) * width,
                   reference_memory(*region) + (uint64_t{copy.src_block} * 64 + copy.src_row) * width, copy.n_rows * width * 4);
  }
  return {};
}

// Its regions hold f32 rows one after the other, which is the canonical form.
Status ReferenceDevice::kv_export(const KvLayer& layer, std::span<const KvRows> rows, std::byte* k_rows, std::byte* v_rows) {
  flush();
  const uint64_t width = uint64_t{layer.layout.n_head_kv} * layer.layout.head_dim;
  for (const KvRows& range : rows) {
    if (range.block >= layer.layout.n_blocks || range.first_row + range.n_rows > 64) return invalid("KV export outside the region");
    const uint64_t first = (uint64_t{range.block} * 64 + range.first_row) * width, bytes = range.n_rows * width * 4;
    std::memcpy(k_rows, reference_memory(*layer.k) + first, bytes);
    std::memcpy(v_rows, reference_memory(*layer.v) + first, bytes);
    k_rows += bytes;
    v_rows += bytes;
  }
  return {};
}

Status ReferenceDevice::kv_import(const KvLayer& layer, std::span<const KvRows> rows, const std::byte* k_rows, const std::byte* v_rows) {
  flush();
  if (hits(fail_kv_import)) return make_error(ErrorCode::kDeviceLost, "injected failure of a KV import");
  const uint64_t width = uint64_t{layer.layout.n_head_kv} * layer.layout.head_dim;
  for (const KvRows& range : rows) {
    if (range.block >= layer.layout.n_blocks || range.first_row + range.n_rows > 64) return invalid("KV import outside the region");
    const uint64_t first = (uint64_t{range.block} * 64 + range.first_row) * width, bytes = range.n_rows * width * 4;
    std::memcpy(reference_memory(*layer.k) + first, k_rows, bytes);
    std::memcpy(reference_memory(*layer.v) + first, v_rows, bytes);
    k_rows += bytes;
    v_rows += bytes;
  }
  return {};
}

Status ReferenceDevice::kv_rotate(const KvLayer& layer, const KvRotation& rotation, WeightSet* weights, std::span<const KvRows> rows,
                                  bool check_only) {
  if (hits(fail_kv_rotate)) return make_error(ErrorCode::kDeviceLost, "injected failure of a KV rotation");
  const float* factors =
      rotation.freq_factors == kNone ? nullptr : static_cast<ReferenceWeights*>(weights)->values_.at(rotation.freq_factors).data();
  const uint64_t width = uint64_t{layer.layout.n_head_kv} * layer.layout.head_dim;
  for (const KvRows& range : rows)
    if (range.block >= layer.layout.n_blocks || range.first_row + range.n_rows > 64) return invalid("KV rotation outside the region");
  if (check_only) return {};
  ++counters.kv_rotations;
  for (const KvRows& range : rows)
    for (uint32_t row = 0; row < range.n_rows; ++row) {
      float* k = reference_memory(*layer.k) + (uint64_t{range.block} * 64 + range.first_row + row) * width;
      rope_row(k, k, rotation.rope, layer.layout.n_head_kv, rotation.delta, factors);
    }
  return {};
}

Result<std::unique_ptr<Plan>> ReferenceDevice::create_plan(const SplitView& view, WeightSet* weights) {
  if (hits(fail_plan)) return make_error(ErrorCode::kOutOfMemory, "injected failure of a plan");
  auto plan = std::make_unique<ReferencePlan>(*this);
  MINFER_TRY(plan->init(view, static_cast<ReferenceWeights*>(weights)));
  ++counters.plans;
  return std::unique_ptr<Plan>(std::move(plan));
}

Status ReferenceDevice::sync() {
  ++counters.syncs;
  flush();
  return std::exchange(late_, {});
}

void ReferenceDevice::flush() {
  for (const auto& run : std::exchange(queue_, {})) {
    Status status = run();
    if (late_.ok()) late_ = std::move(status);
  }
}

}  // namespace minfer::test
