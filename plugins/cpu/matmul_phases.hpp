// Phases that multiply: a single product, the fused feed-forward and the fused query-key-value projection. A thread owns features
// (rows of the weights) for all tokens, so what follows a product element by element is done by the thread that made it.
#pragma once

#include "activations.hpp"
#include "weights.hpp"

namespace minfer::cpu {

// out = x * weight + bias (+ residual)
class MatmulPhase final : public Phase {
 public:
  Activations activations;
  const CpuWeight* weight = nullptr;
  const float* bias = nullptr;
  float* product = nullptr;         // [n_tokens][rows]
  const float* residual = nullptr;  // [n_tokens][rows]; null: the product is all that is wanted
  float* out = nullptr;             // product + residual; may be either of them
  size_t packing_offset = 0;        // in the own scratch, room for a group of the weight (CpuWeight::use)

  void run(const Worker& worker) override;
};

// silu(x * gate) * (x * up), left as f32 in `out`, or as 8-bit activations in Worker::shared[1] for the product that follows.
class FfnPhase final : public Phase {
 public:
  Activations activations;
  const CpuWeight* gate = nullptr;
  const CpuWeight* up = nullptr;
  float* out = nullptr;  // [n_tokens][rows] or null
  bool want_q8 = false;
  size_t scratch_offset = 0;
  size_t packing_offset = 0;
  uint32_t layer = 0;

  static size_t features_at_once(size_t n_tokens, size_t rows, unsigned n_threads);
  static size_t scratch_bytes(size_t n_tokens, size_t rows, unsigned n_threads) {
    return 2 * n_tokens * features_at_once(n_tokens, rows, n_threads) * sizeof(float);
  }
  void run(const Worker& worker) override;
};

// Where KV rows of one layer go.
struct KvTarget {
  KvLayout layout;
  std::byte* k = nullptr;
  std::byte* v = nullptr;
};

// Stores one head of one position. Reports what the format cannot hold.
void store_kv_head(const Worker& worker, const KvTarget& kv, const AttentionRow& row, int32_t kv_head, const float* k, const float* v,
                   uint32_t layer, int64_t batch_row);

struct RopeTable {
  int64_t half_dim = 0;
  const float* cos = nullptr;  // [n_ctx][half_dim]
  const float* sin = nullptr;
  bool interleaved = false;

  void rotate(const OpKernels& ops, float* x, int64_t n_heads, int32_t position) const {
    (interleaved ? ops.rope_interleaved : ops.rope_split)(x, n_heads, 2 * half_dim, 2 * half_dim, cos + position * half_dim,
                                                          sin + position * half_dim);
  }
};

// Projections with bias, rotation of q and k, K and V stored. With `by_kv_head` a thread does the kv heads and their query heads that
// AttentionPhase gives it too, so no barrier is needed between the two.
class QkvPhase final : public Phase {
 public:
  Activations activations;
  const CpuWeight *wq = nullptr, *wk = nullptr, *wv = nullptr;
  const float *bq = nullptr, *bk = nullptr, *bv = nullptr;
  RopeTable rope;
  KvTarget kv;
  int rows_of = 0;  // index into RunState::rows
  int32_t n_head = 0;
  float* q = nullptr;  // [n_tokens][n_head * head_dim]
  bool by_kv_head = false;
  size_t scratch_offset = 0;
  size_t packing_offset = 0;
  uint32_t layer = 0;

  static size_t scratch_bytes(size_t n_tokens, size_t head_dim) { return 2 * n_tokens * head_dim * sizeof(float); }
  void run(const Worker& worker) override;

 private:
  void query_heads(const Worker& worker, const Activations::Ready& ready, size_t begin, size_t end);
  void kv_head(const Worker& worker, const Activations::Ready& ready, size_t head);
};

}  // namespace minfer::cpu
