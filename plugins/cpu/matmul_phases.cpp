#include "matmul_phases.hpp"

#include <algorithm>

namespace minfer::cpu {
namespace {

// From this many tokens on, work is handed out in small pieces to whoever is free; below it in long ranges, since the weights stream
// from memory.
constexpr size_t kManyTokens = 8;
constexpr size_t kFeaturesInTurn = 64;
constexpr size_t kRangeRows = 64;  // long ranges have a multiple of these: as many groups as a kernel reads side by side

// out[token][row - row_begin] for rows [row_begin, row_end) of a weight; row_begin is a multiple of 16.
void multiply(const Worker& worker, const CpuWeight& weight, const float* bias, const Activations& activations,
              const Activations::Ready& ready, size_t row_begin, size_t row_end, float* out, size_t out_stride, size_t packing_offset) {
  MatmulArgs args;
  args.rows = weight.rows;
  args.cols = weight.cols;
  args.n_tokens = activations.n_tokens;
  args.q8 = ready.q8;
  args.x = ready.x;
  args.x_stride = activations.cols;
  args.bias = bias;
  args.out = out - row_begin;  // the kernel adds the row's number
  args.out_stride = out_stride;
  args.scratch = worker.scratch;
  const size_t end = group_count(row_end);
  for (size_t group = row_begin / kGroupRows; group < end; group = args.group_end) {
    const CpuWeight::PackedGroups groups = weight.use(worker.kernels.matmul, group, end, worker.own_scratch() + packing_offset);
    args.weights = groups.first - group * weight.group_bytes();  // the kernel counts groups from the first of the matrix
    args.group_begin = group;
    args.group_end = groups.end;
    matmul(worker.kernels.matmul, weight.type, args);
  }
}

}  // namespace

void MatmulPhase::run(const Worker& worker) {
  const Activations::Ready ready = activations.get(worker);
  const size_t rows = weight->rows;
  const auto part = [&](size_t begin, size_t end) {
    if (begin >= end) return;
    multiply(worker, *weight, bias, activations, ready, begin, end, product + begin, rows, packing_offset);
    if (!residual) return;
    for (size_t token = 0; token < activations.n_tokens; ++token) {
      const size_t at = token * rows + begin;
      worker.kernels.ops.add(residual + at, product + at, out + at, static_cast<int64_t>(end - begin));
    }
  };
  if (activations.n_tokens < kManyTokens) {
    share_ranges(worker, group_count(rows), kRangeRows / kGroupRows,
                 [&](size_t begin, size_t end) { part(begin * kGroupRows, std::min(end * kGroupRows, rows)); });
  } else {
    share(worker, (rows + kFeaturesInTurn - 1) / kFeaturesInTurn, true,
          [&](size_t i) { part(i * kFeaturesInTurn, std::min((i + 1) * kFeaturesInTurn, rows)); });
  }
}

size_t FfnPhase::features_at_once(size_t n_tokens, size_t rows, unsigned n_threads) {
  if (n_tokens >= kManyTokens) return kFeaturesInTurn;
  return longest_range((rows + 31) / 32, kRangeRows / 32, n_threads) * 32;
}

void FfnPhase::run(const Worker& worker) {
  const Activations::Ready ready = activations.get(worker);
  const size_t n_tokens = activations.n_tokens;
  const size_t rows = gate->rows;
  const size_t width = features_at_once(n_tokens, rows, worker.n_threads);
  float* gate_rows = reinterpret_cast<float*>(worker.own_scratch() + scratch_offset);  // [n_tokens][end - begin]
  float* up_rows = gate_rows + n_tokens * width;
  const auto part = [&](size_t begin, size_t end) {
    if (begin >= end) return;
    const size_t n = end - begin;
    multiply(worker, *gate, nullptr, activations, ready, begin, end, gate_rows, n, packing_offset);
    multiply(worker, *up, nullptr, activations, ready, begin, end, up_rows, n, packing_offset);
    worker.kernels.ops.silu_mul(gate_rows, up_rows, gate_rows, static_cast<int64_t>(n_tokens * n));
    if (out)
      for (size_t token = 0; token < n_tokens; ++token) std::copy_n(gate_rows + token * n, n, out + token * rows + begin);
    if (!want_q8) return;
    QuantizeArgs args;
    args.x = gate_rows - begin;  // the kernel adds the column's number
    args.x_stride = n;
    args.cols = rows;
    args.n_tokens = n_tokens;
    args.token_begin = 0;
    args.token_end = n_tokens;
    args.block_begin = begin / 32;
    args.block_end = end / 32;
    args.out = reinterpret_cast<Q8Block*>(worker.shared[1]);
    if (!worker.kernels.matmul.quantize(args))
      worker.failure.set(worker.phase, MI_INVALID_ARGUMENT, "an activation of the feed-forward is not finite", layer, -1);
  };
  if (n_tokens < kManyTokens) {
    share_ranges(worker, (rows + 31) / 32, kRangeRows / 32, [&](size_t begin, size_t end) { part(begin * 32, std::min(end * 32, rows)); });
  } else {
    share(worker, (rows + width - 1) / width, true, [&](size_t i) { part(i * width, std::min((i + 1) * width, rows)); });
  }
}

void store_kv_head(const Worker& worker, const KvTarget& kv, const AttentionRow& row, int32_t kv_head, const float* k, const float* v,
                   uint32_t layer, int64_t batch_row) {
  if (!row.blocks) return;  // padding
  // One head of a block lies contiguously, so the region reads as one of single-head blocks.
  KvLayout one_head = kv.layout;
  one_head.n_kv_heads = 1;
  const int64_t block = row.blocks[row.position / kKvBlock];
  const int64_t cell = (block * kv.layout.n_kv_heads + kv_head) * kKvBlock + row.position % kKvBlock;
  switch (kv_store_row(one_head, kv.k, kv.v, cell, k, v)) {
    case KvStore::kOk: return;
    case KvStore::kNonFinite:
      return worker.failure.set(worker.phase, MI_INVALID_ARGUMENT, "a K or V value is not finite", layer, batch_row);
    case KvStore::kBeyondFormat:
      return worker.failure.set(worker.phase, MI_INVALID_ARGUMENT, "a K or V value is beyond what the KV format holds (use kv_format f32)",
                                layer, batch_row);
  }
}

void QkvPhase::query_heads(const Worker& worker, const Activations::Ready& ready, size_t begin, size_t end) {
  if (begin >= end) return;
  const size_t head_dim = static_cast<size_t>(kv.layout.head_dim);
  const size_t width = static_cast<size_t>(n_head) * head_dim;
  multiply(worker, *wq, bq, activations, ready, begin * head_dim, end * head_dim, q + begin * head_dim, width, packing_offset);
  for (size_t token = 0; token < activations.n_tokens; ++token)
    if (const AttentionRow& row = worker.state.rows[rows_of][token]; row.blocks)
      rope.rotate(worker.kernels.ops, q + token * width + begin * head_dim, static_cast<int64_t>(end - begin), row.position);
}

void QkvPhase::kv_head(const Worker& worker, const Activations::Ready& ready, size_t head) {
  const size_t head_dim = static_cast<size_t>(kv.layout.head_dim);
  float* k = reinterpret_cast<float*>(worker.own_scratch() + scratch_offset);  // [n_tokens][head_dim]
  float* v = k + activations.n_tokens * head_dim;
  multiply(worker, *wk, bk, activations, ready, head * head_dim, (head + 1) * head_dim, k, head_dim, packing_offset);
  multiply(worker, *wv, bv, activations, ready, head * head_dim, (head + 1) * head_dim, v, head_dim, packing_offset);
  for (size_t token = 0; token < activations.n_tokens; ++token) {
    const AttentionRow& row = worker.state.rows[rows_of][token];
    if (!row.blocks) continue;
    rope.rotate(worker.kernels.ops, k + token * head_dim, 1, row.position);
    store_kv_head(worker, kv, row, static_cast<int32_t>(head), k + token * head_dim, v + token * head_dim, layer,
                  static_cast<int64_t>(token));
  }
}

void QkvPhase::run(const Worker& worker) {
  const Activations::Ready ready = activations.get(worker);
  const auto n_kv = static_cast<size_t>(kv.layout.n_kv_heads);
  const size_t group = static_cast<size_t>(n_head) / n_kv;
  if (by_kv_head) {
    const Range heads = split_evenly(n_kv, worker.thread, worker.n_threads);
    query_heads(worker, ready, heads.begin * group, heads.end * group);
    for (size_t head = heads.begin; head < heads.end; ++head) kv_head(worker, ready, head);
    return;
  }
  share(worker, n_kv + static_cast<size_t>(n_head), activations.n_tokens >= kManyTokens, [&](size_t i) {
    if (i < n_kv)
      kv_head(worker, ready, i);
    else
      query_heads(worker, ready, i - n_kv, i - n_kv + 1);
  });
}

}  // namespace minfer::cpu
