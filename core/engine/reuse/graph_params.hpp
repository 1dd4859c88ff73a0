// The key of the graph cache: everything that shapes a graph and nothing else. Positions, token ids, how many sequences
// a batch holds, how much is cached, windows: data in graph inputs, never here.
#pragma once

#include <cstdint>

namespace minfer {

enum class KvFormat : uint32_t { kF32 = 0, kF16 = 1, kQ8_0 = 8 };

inline constexpr uint32_t kKvBlockPositions = 64;

// Fixed for a session. Each comment names the decision that reads the field.
struct CParams {
  uint32_t n_ctx = 4096;                // shape of the block table
  uint32_t max_seqs = 1;                // shape of the block table
  KvFormat kv_format = KvFormat::kF16;  // layout of the KV regions that plans are bound to
  bool fuse_qkv = true;                 // schedule/fuse: MatMul x3 + Rope x2 + KvStore -> FusedQkv
  bool fuse_ffn = true;                 // schedule/fuse: MatMul x2 + Silu + Mul -> FusedFfn
  uint32_t placement_id = 0;            // which device each node gets
  bool observe = false;                 // schedule/split: cut after every node; memory is never shared

  uint32_t blocks_per_seq() const { return (n_ctx + kKvBlockPositions - 1) / kKvBlockPositions; }
  friend bool operator==(const CParams&, const CParams&) = default;
};

enum class GraphType : uint32_t { kPrefill, kDecode };

struct GraphParams {
  uint32_t n_tokens = 0;                  // rows of the batch
  uint32_t n_out = 0;                     // rows whose logits are wanted; 0: nothing behind the last KV store
  GraphType gtype = GraphType::kPrefill;  // kDecode iff n_tokens == 1. Part of the contract; no topology reads it yet
  CParams cparams;
  uint64_t weights_version = 1;  // part of the contract; no topology reads it yet

  friend bool operator==(const GraphParams&, const GraphParams&) = default;
};

GraphParams make_graph_params(uint32_t n_tokens, uint32_t n_out, const CParams& cparams, uint64_t weights_version = 1);

}  // namespace minfer
