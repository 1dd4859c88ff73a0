// Phases that work row by row or element by element, and attention.
#pragma once

#include "matmul_phases.hpp"

namespace minfer::cpu {

// Embedding rows of the tokens, as f32.
class EmbeddingPhase final : public Phase {
 public:
  const CpuWeight* weight = nullptr;
  uint32_t ids_input = 0;  // MI_INPUT_*
  size_t n_rows = 0;
  float* out = nullptr;  // [n_rows][cols]
  void run(const Worker& worker) override;
};

// Rows of an activation, by number.
class SelectRowsPhase final : public Phase {
 public:
  const float* x = nullptr;  // [n_source_rows][cols]
  size_t n_source_rows = 0;
  size_t cols = 0;
  uint32_t ids_input = 0;
  size_t n_rows = 0;
  float* out = nullptr;
  void run(const Worker& worker) override;
};

class NormPhase final : public Phase {
 public:
  const float* x = nullptr;
  const float* weight = nullptr;
  float* out = nullptr;
  size_t n_rows = 0;
  size_t cols = 0;
  float eps = 0;
  void run(const Worker& worker) override;
};

class RopePhase final : public Phase {
 public:
  RopeTable rope;
  const float* x = nullptr;
  float* out = nullptr;  // may be x
  size_t n_rows = 0;
  size_t n_head = 0;
  uint32_t positions_input = 0;  // MI_INPUT_*
  uint32_t n_ctx = 0;
  uint32_t layer = 0;
  void run(const Worker& worker) override;
};

class KvStorePhase final : public Phase {
 public:
  KvTarget kv;
  const float* k = nullptr;  // [n_rows][n_kv_heads * head_dim]
  const float* v = nullptr;
  size_t n_rows = 0;
  int rows_of = 0;  // index into RunState::rows
  uint32_t layer = 0;
  void run(const Worker& worker) override;
};

class AttentionPhase final : public Phase {
 public:
  KvTarget kv;
  int32_t n_head = 0;
  float scale = 0;
  const float* q = nullptr;
  float* out = nullptr;
  size_t n_rows = 0;
  int rows_of = 0;
  bool by_kv_head = false;  // as QkvPhase
  size_t scratch_offset = 0;

  static constexpr size_t kRowsAtOnce = 32;
  static size_t scratch_bytes(size_t n_rows, int32_t n_head, const KvLayout& layout, uint32_t n_ctx);
  void run(const Worker& worker) override;
};

// Add, Mul, Silu, SiluMul. y may be a or b.
class ElementPhase final : public Phase {
 public:
  uint32_t op = 0;  // MI_OP_*
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
  size_t n = 0;
  void run(const Worker& worker) override;
};

}  // namespace minfer::cpu
