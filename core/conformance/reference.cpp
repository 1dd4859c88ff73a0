#include "conformance/reference.hpp"

#include <algorithm>
#include <cstring>

#include "conformance/float16.hpp"

namespace minfer::conformance {
namespace {

// Blocks of 32 through 8 bits, as Contract::kQ8 says.
std::vector<double> through_q8(const std::vector<double>& x) {
  std::vector<double> out(x.size());
  for (size_t begin = 0; begin < x.size(); begin += 32) {
    const size_t end = std::min(begin + 32, x.size());
    float amax = 0;
    bool finite = true;
    for (size_t i = begin; i < end; ++i) {
      finite = finite && std::isfinite(x[i]);
      amax = std::max(amax, std::fabs(static_cast<float>(x[i])));
    }
    for (size_t i = begin; i < end; ++i) {
      if (!finite) {
        out[i] = std::nan("");
      } else if (amax < 0x1p-100f) {
        out[i] = 0;
      } else {
        const float inverse = 127.0f / amax, step = amax / 127.0f;
        out[i] = static_cast<double>(std::nearbyint(static_cast<float>(x[i]) * inverse)) * step;
      }
    }
  }
  return out;
}

// Turns the heads of a row by position * sign; pairs by OpAttrs::rope_kind.
void rotate_row(double* x, const OpAttrs& a, uint32_t n_head, double position, const std::vector<double>* factors) {
  const uint32_t half = a.head_dim / 2;
  const bool split = a.rope_kind == RopeKind::kSplitHalves;
  for (uint32_t head = 0; head < n_head; ++head)
    for (uint32_t i = 0; i < half; ++i) {
      double& first = x[head * a.head_dim + (split ? i : 2 * i)];
      double& second = x[head * a.head_dim + (split ? i + half : 2 * i + 1)];
      const double angle = position * static_cast<double>(a.rope_freq_scale) *
                           std::pow(static_cast<double>(a.rope_freq_base), -2.0 * i / a.head_dim) / (factors ? (*factors)[i] : 1.0);
      const double p = first, q = second;
      first = p * std::cos(angle) - q * std::sin(angle);
      second = p * std::sin(angle) + q * std::cos(angle);
    }
}

double silu(double x) { return x / (1 + std::exp(-x)); }

class Evaluator {
 public:
  Evaluator(const Problem& problem, Contract contract, ReferenceKvs& kvs)
      : problem_(problem), graph_(problem.graph()), contract_(contract), kvs_(kvs), values_(graph_.values.size()) {
    for (const auto& [id, data] : problem.sources()) {
      RowValues out = make(graph_.values[id].shape);
      out.x.assign(data.begin(), data.end());
      values_[id] = measured(std::move(out));
    }
  }

  std::vector<RowValues> run() {
    for (const NodeId n : problem_.nodes()) {
      node_ = &graph_.nodes[n];
      if (node_->outputs.empty())
        kv_store();
      else
        values_[node_->outputs[0]] = compute();
    }
    return std::move(values_);
  }

 private:
  static RowValues make(const Shape& shape) {
    RowValues out;
    out.width = shape.dims[0];
    out.x.resize(shape.elements());
    out.energy.resize(shape.rows());
    out.defined.assign(shape.rows(), true);
    return out;
  }
  // Raises the energy of each row to that of its finite values.
  static RowValues measured(RowValues out) {
    for (uint64_t r = 0; r < out.rows(); ++r) {
      double sum = 0;
      for (uint64_t i = 0; i < out.width; ++i)
        if (const double x = out.x[r * out.width + i]; std::isfinite(x)) sum += x * x;
      out.energy[r] = std::max(out.energy[r], sum);
    }
    return out;
  }

  bool has(size_t slot) const { return slot < node_->inputs.size() && node_->inputs[slot] != kNone; }
  const RowValues& in(size_t slot) const { return values_[node_->inputs[slot]]; }
  const Tensor& tensor(size_t slot) const { return problem_.tensors()[graph_.values[node_->inputs[slot]].index]; }
  const std::vector<double>* vector(size_t slot) const { return has(slot) ? &tensor(slot).values : nullptr; }
  const std::vector<int32_t>& ids(size_t slot) const { return problem_.input_data(graph_.values[node_->inputs[slot]].index); }

  RowValues compute() {
    switch (node_->op) {
      case Op::kGetRows: return get_rows();
      case Op::kRmsNorm: return rms_norm();
      case Op::kMatMul: return matmul(0, 1, 2);
      case Op::kRope: return rope(in(0), node_->attrs.n_head, 1, 2);
      case Op::kAttention: return attention();
      case Op::kFusedQkv: return fused_qkv();
      case Op::kFusedFfn: {
        const RowValues gate = matmul(0, 1, kNone), up = matmul(0, 2, kNone);
        return each([&](size_t i) { return silu(gate.x[i]) * up.x[i]; });
      }
      case Op::kAdd: {
        RowValues out = each([&](size_t i) { return in(0).x[i] + in(1).x[i]; });
        for (uint64_t r = 0; r < out.rows(); ++r) out.energy[r] = std::max(out.energy[r], in(0).energy[r] + in(1).energy[r]);
        return out;
      }
      case Op::kMul: return each([&](size_t i) { return in(0).x[i] * in(1).x[i]; });
      case Op::kSilu: return each([&](size_t i) { return silu(in(0).x[i]); });
      case Op::kSiluMul: return each([&](size_t i) { return silu(in(0).x[i]) * in(1).x[i]; });
      default: return make(graph_.values[node_->outputs[0]].shape);
    }
  }

  template <class F>
  RowValues each(F&& f) const {
    RowValues out = make(graph_.values[node_->outputs[0]].shape);
    for (size_t i = 0; i < out.x.size(); ++i) out.x[i] = f(i);
    return measured(std::move(out));
  }

  RowValues get_rows() const {
    RowValues out = make(graph_.values[node_->outputs[0]].shape);
    const std::vector<double>& from = graph_.values[node_->inputs[0]].kind == ValueKind::kWeight ? tensor(0).values : in(0).x;
    for (uint64_t r = 0; r < out.rows(); ++r)
      std::copy_n(&from[static_cast<uint64_t>(ids(1)[r]) * out.width], out.width, &out.x[r * out.width]);
    return measured(std::move(out));
  }

  RowValues rms_norm() const {
    RowValues out = make(graph_.values[node_->outputs[0]].shape);
    for (uint64_t r = 0; r < out.rows(); ++r) {
      const double* x = &in(0).x[r * out.width];
      double sum = 0;
      for (uint64_t i = 0; i < out.width; ++i) sum += x[i] * x[i];
      const double scale = 1 / std::sqrt(sum / static_cast<double>(out.width) + static_cast<double>(node_->attrs.eps));
      for (uint64_t i = 0; i < out.width; ++i) out.x[r * out.width + i] = x[i] * scale * (*vector(1))[i];
    }
    return measured(std::move(out));
  }

  RowValues matmul(size_t x_slot, size_t weight_slot, size_t bias_slot) const {
    const Tensor& w = tensor(weight_slot);
    const RowValues& x = in(x_slot);
    const uint64_t n_in = w.shape.dims[0], n_out = w.shape.dims[1];
    RowValues out = make(Shape{n_out, x.rows()});
    for (uint64_t r = 0; r < x.rows(); ++r) {
      std::vector<double> row(&x.x[r * n_in], &x.x[r * n_in] + n_in);
      if (contract_ == Contract::kQ8 && is_quantised(w.dtype)) row = through_q8(row);
      for (uint64_t o = 0; o < n_out; ++o) {
        const double* weights = &w.values[o * n_in];
        double sum = 0, energy = 0;
        for (uint64_t i = 0; i < n_in; ++i) {
          const double term = weights[i] * row[i];
          sum += term;
          energy += term * term;
        }
        const double bias = bias_slot != kNone && has(bias_slot) ? (*vector(bias_slot))[o] : 0;
        out.x[r * n_out + o] = sum + bias;
        if (std::isfinite(energy)) out.energy[r] += energy + bias * bias;
      }
    }
    return measured(std::move(out));
  }

  RowValues rope(const RowValues& x, uint32_t n_head, size_t positions_slot, size_t factors_slot) const {
    RowValues out = x;
    for (uint64_t r = 0; r < out.rows(); ++r)
      rotate_row(&out.x[r * out.width], node_->attrs, n_head, ids(positions_slot)[r], vector(factors_slot));
    return measured(std::move(out));
  }

  // The cell of a position of a sequence. Problems that are evaluated name cells that exist.
  uint64_t cell(size_t table_slot, int32_t seq, int32_t position) const {
    const uint64_t width = graph_.values[node_->inputs[table_slot]].shape.dims[0];
    const int32_t block = ids(table_slot)[static_cast<uint64_t>(seq) * width + static_cast<uint64_t>(position) / 64];
    return static_cast<uint64_t>(block) * 64 + static_cast<uint64_t>(position) % 64;
  }
  void store(const RowValues& k, const RowValues& v, size_t positions_slot) {
    ReferenceKv& kv = kvs_.at(node_->layer);
    for (uint64_t r = 0; r < k.rows(); ++r)
      if (const int32_t seq = ids(positions_slot + 1)[r]; seq >= 0)
        kv.store(cell(positions_slot + 2, seq, ids(positions_slot)[r]), &k.x[r * k.width], &v.x[r * v.width]);
  }
  void kv_store() { store(in(0), in(1), 2); }

  RowValues fused_qkv() {
    const OpAttrs& a = node_->attrs;
    store(rope(matmul(0, 2, 5), a.n_head_kv, 7, 10), matmul(0, 3, 6), 7);
    RowValues q = rope(matmul(0, 1, 4), a.n_head, 7, 10);
    for (uint64_t r = 0; r < q.rows(); ++r) q.defined[r] = ids(8)[r] >= 0;
    return q;
  }

  RowValues attention() const {
    const OpAttrs& a = node_->attrs;
    const ReferenceKv& kv = kvs_.at(node_->layer);
    RowValues out = make(graph_.values[node_->outputs[0]].shape);
    for (uint64_t r = 0; r < out.rows(); ++r) {
      const int32_t position = ids(1)[r], seq = ids(2)[r];
      out.defined[r] = seq >= 0;
      if (seq < 0) continue;
      const int32_t first = a.window ? std::max(0, position + 1 - static_cast<int32_t>(a.window)) : 0;
      std::vector<uint64_t> cells;
      for (int32_t p = first; p <= position; ++p) cells.push_back(cell(3, seq, p));
      for (uint32_t head = 0; head < a.n_head; ++head) {
        const uint64_t at = r * out.width + uint64_t{head} * a.head_dim, in_row = uint64_t{head / (a.n_head / a.n_head_kv)} * a.head_dim;
        std::vector<double> scores(cells.size());
        double top = -INFINITY, total = 0;
        for (size_t i = 0; i < cells.size(); ++i) {
          const float* k = kv.k(cells[i]) + in_row;
          double dot = 0;
          for (uint32_t d = 0; d < a.head_dim; ++d) dot += in(0).x[at + d] * k[d];
          scores[i] = dot * a.attn_scale;
          top = std::max(top, scores[i]);
        }
        for (double& score : scores) total += score = std::exp(score - top);
        for (size_t i = 0; i < cells.size(); ++i) {
          const float* v = kv.v(cells[i]) + in_row;
          for (uint32_t d = 0; d < a.head_dim; ++d) out.x[at + d] += scores[i] / total * v[d];
        }
      }
    }
    return measured(std::move(out));
  }

  const Problem& problem_;
  const Graph& graph_;
  Contract contract_;
  ReferenceKvs& kvs_;
  std::vector<RowValues> values_;
  const Node* node_ = nullptr;
};

}  // namespace

void through_format(KvFormat format, const double* x, uint64_t n, float* out) {
  for (uint64_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i]);
  if (format == KvFormat::kF16)
    for (uint64_t i = 0; i < n; ++i) out[i] = static_cast<float>(f16_to_double(double_to_f16(out[i])));
  if (format != KvFormat::kQ8_0) return;
  for (uint64_t begin = 0; begin < n; begin += 32) {
    float amax = 0;
    for (uint64_t i = begin; i < begin + 32; ++i) amax = std::max(amax, std::fabs(out[i]));
    const auto scale = static_cast<float>(f16_to_double(double_to_f16(amax / 127.0f)));
    for (uint64_t i = begin; i < begin + 32; ++i)
      out[i] = scale == 0 ? 0 : scale * std::clamp(std::nearbyint(out[i] / scale), -127.0f, 127.0f);
  }
}

ReferenceKv::ReferenceKv(const KvLayout& layout) : layout_(layout) {
  k_.assign(width() * layout.n_blocks * kKvBlockPositions, std::nanf(""));
  v_ = k_;
}

void ReferenceKv::store(uint64_t cell, const double* k_row, const double* v_row) {
  through_format(layout_.format, k_row, width(), k(cell));
  through_format(layout_.format, v_row, width(), v(cell));
}

void ReferenceKv::copy(const KvRowCopy& copy) {
  for (uint32_t i = 0; i < copy.n_rows; ++i) {
    const uint64_t from = uint64_t{copy.src_block} * 64 + copy.src_row + i, to = uint64_t{copy.dst_block} * 64 + copy.dst_row + i;
    std::memmove(k(to), k(from), width() * 4);
    std::memmove(v(to), v(from), width() * 4);
  }
}

void ReferenceKv::rotate(const KvRotation& rotation, const std::vector<double>* factors, std::span<const KvRows> rows) {
  for (const KvRows& range : rows)
    for (uint32_t i = 0; i < range.n_rows; ++i) {
      float* row = k(uint64_t{range.block} * 64 + range.first_row + i);
      std::vector<double> turned(row, row + width());
      rotate_row(turned.data(), rotation.rope, layout_.n_head_kv, rotation.delta, factors);
      through_format(layout_.format, turned.data(), width(), row);
    }
}

std::vector<RowValues> evaluate(const Problem& problem, Contract contract, ReferenceKvs& kvs) {
  return Evaluator(problem, contract, kvs).run();
}

}  // namespace minfer::conformance
