#include "row_phases.hpp"

#include <algorithm>

namespace minfer::cpu {

void EmbeddingPhase::run(const Worker& worker) {
  const int32_t* ids = worker.state.inputs[ids_input];
  share(worker, n_rows, false, [&](size_t i) {
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= weight->rows)
      return worker.failure.set(worker.phase, MI_INVALID_ARGUMENT, "a token id is outside the embedding", MI_LAYER_EMBEDDING,
                                static_cast<int64_t>(i));
    weight->look_up(static_cast<size_t>(ids[i]), out + i * weight->cols);
  });
}

void SelectRowsPhase::run(const Worker& worker) {
  const int32_t* ids = worker.state.inputs[ids_input];
  share(worker, n_rows, false, [&](size_t i) {
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= n_source_rows)
      return worker.failure.set(worker.phase, MI_INVALID_ARGUMENT, "a row number is outside the batch", MI_LAYER_OUTPUT,
                                static_cast<int64_t>(i));
    std::copy_n(x + static_cast<size_t>(ids[i]) * cols, cols, out + i * cols);
  });
}

void NormPhase::run(const Worker& worker) {
  const Range rows = split_evenly(n_rows, worker.thread, worker.n_threads);
  if (rows.begin == rows.end) return;
  worker.kernels.ops.rms_norm(x + rows.begin * cols, weight, out + rows.begin * cols, static_cast<int64_t>(rows.end - rows.begin),
                              static_cast<int64_t>(cols), eps);
}

void RopePhase::run(const Worker& worker) {
  const size_t width = n_head * static_cast<size_t>(2 * rope.half_dim);
  const int32_t* positions = worker.state.inputs[positions_input];
  share(worker, n_rows, false, [&](size_t i) {
    if (positions[i] < 0 || static_cast<uint32_t>(positions[i]) >= n_ctx)
      return worker.failure.set(worker.phase, MI_INVALID_ARGUMENT, "a position is outside the context", layer, static_cast<int64_t>(i));
    float* y = out + i * width;
    if (y != x + i * width) std::copy_n(x + i * width, width, y);
    rope.rotate(worker.kernels.ops, y, static_cast<int64_t>(n_head), positions[i]);
  });
}

void KvStorePhase::run(const Worker& worker) {
  const auto head_dim = static_cast<size_t>(kv.layout.head_dim);
  const size_t width = static_cast<size_t>(kv.layout.n_kv_heads) * head_dim;
  share(worker, n_rows, false, [&](size_t i) {
    for (int32_t head = 0; head < kv.layout.n_kv_heads; ++head) {
      const size_t at = i * width + static_cast<size_t>(head) * head_dim;
      store_kv_head(worker, kv, worker.state.rows[rows_of][i], head, k + at, v + at, layer, static_cast<int64_t>(i));
    }
  });
}

size_t AttentionPhase::scratch_bytes(size_t n_rows, int32_t n_head, const KvLayout& layout, uint32_t n_ctx) {
  return attention_scratch_bytes(layout.head_dim, static_cast<int32_t>(std::min(n_rows, kRowsAtOnce)), n_head / layout.n_kv_heads,
                                 static_cast<int32_t>(n_ctx - 1));
}

void AttentionPhase::run(const Worker& worker) {
  const std::vector<AttentionRow>& batch = worker.state.rows[rows_of];
  AttentionArgs args;
  args.layout = kv.layout;
  args.n_heads = n_head;
  args.scale = scale;
  args.k_region = kv.k;
  args.v_region = kv.v;
  args.q = q;
  args.out = out;
  args.q_stride = args.out_stride = int64_t{n_head} * kv.layout.head_dim;
  args.rows = batch.data();
  void* scratch = worker.own_scratch() + scratch_offset;

  const auto n_kv = static_cast<size_t>(kv.layout.n_kv_heads);
  const size_t group = static_cast<size_t>(n_head) / n_kv;
  const size_t n_tiles = (n_rows + kRowsAtOnce - 1) / kRowsAtOnce;
  // With fewer units than threads the query heads of a group are shared out too.
  size_t parts = 1;
  if (!by_kv_head && n_kv * n_tiles < worker.n_threads) parts = std::min(group, (worker.n_threads + n_kv * n_tiles - 1) / (n_kv * n_tiles));
  share(worker, n_kv * n_tiles * parts, !by_kv_head && n_tiles > 1, [&](size_t i) {
    // Fixed parts: kv head by kv head. In turn: the last tiles first, they see the most positions.
    const size_t part = i % parts;
    const size_t tile = by_kv_head ? i / parts % n_tiles : n_tiles - 1 - i / parts / n_kv;
    const size_t kv_head = by_kv_head ? i / parts / n_tiles : i / parts % n_kv;
    AttentionUnit unit;
    const Range heads = split_evenly(group, static_cast<unsigned>(part), static_cast<unsigned>(parts));
    unit.head_begin = static_cast<int32_t>(kv_head * group + heads.begin);
    unit.head_end = static_cast<int32_t>(kv_head * group + heads.end);
    unit.row_begin = static_cast<int32_t>(tile * kRowsAtOnce);
    unit.row_end = static_cast<int32_t>(std::min(n_rows, (tile + 1) * kRowsAtOnce));
    if (unit.head_begin < unit.head_end) worker.kernels.ops.attend(args, unit, scratch);
  });
}

void ElementPhase::run(const Worker& worker) {
  const Range lines = split_evenly((n + 15) / 16, worker.thread, worker.n_threads);  // 64-byte lines
  const size_t begin = lines.begin * 16;
  const size_t end = std::min(lines.end * 16, n);
  if (begin >= end) return;
  const auto count = static_cast<int64_t>(end - begin);
  const OpKernels& ops = worker.kernels.ops;
  switch (op) {
    case MI_OP_ADD: return ops.add(a + begin, b + begin, y + begin, count);
    case MI_OP_MUL: return ops.mul(a + begin, b + begin, y + begin, count);
    case MI_OP_SILU: return ops.silu(a + begin, y + begin, count);
    case MI_OP_SILU_MUL: return ops.silu_mul(a + begin, b + begin, y + begin, count);
    default: return;
  }
}

}  // namespace minfer::cpu
