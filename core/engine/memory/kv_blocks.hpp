// Which block of the KV regions belongs to which sequence: tables, cursors, reference counts. Pure bookkeeping, no memory.
//
// A sequence has a cursor (positions 0..cursor-1 are written) and a table of blocks of 64 positions. A block in two tables
// is shared; before a row is written into it, it is copied. Lowering a cursor keeps rows as garbage that nobody reads.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "engine/device.hpp"
#include "engine/reuse/graph_params.hpp"

namespace minfer {

using SeqId = uint32_t;

// Rows [0, n_rows) of a block that must be copied, in every layer, before the next write.
struct BlockCopy {
  uint32_t src_block, dst_block, n_rows;
  friend bool operator==(const BlockCopy&, const BlockCopy&) = default;
};

// What taking positions [first, first + count) out of a sequence asks of the KV memory. Nothing has changed yet.
struct KvRemoval {
  SeqId seq = 0;
  uint32_t first = 0;
  uint32_t count = 0;
  std::vector<KvRowCopy> kept;   // rows before `first` of a shared block, into the block that replaces it
  std::vector<KvRowCopy> moves;  // the rows above, down by count: ascending, so none is overwritten before it is read
  std::vector<std::pair<uint32_t, uint32_t>> replaced;  // (index in the sequence's table, new block)
};

class KvBlocks {
 public:
  KvBlocks(uint32_t n_ctx, uint32_t max_seqs);

  uint32_t cursor(SeqId seq) const { return cursors_[seq]; }
  uint32_t n_free() const { return static_cast<uint32_t>(free_.size()); }

  // [max_seqs][blocks_per_seq], -1 where a sequence has no block. This is graph input kBlockTable.
  std::span<const int32_t> table() const { return table_; }

  // Makes positions cursor..cursor+n_tokens-1 of a sequence writable: takes blocks, replaces shared ones. The cursor stays.
  // Refuses, changing nothing, positions at or beyond n_ctx and a demand for more blocks than are free.
  Result<std::vector<BlockCopy>> prepare(SeqId seq, uint32_t n_tokens);

  // Where positions [0, n_positions) of a sequence lie, in their order. They must be prepared or written.
  std::vector<KvRows> rows_of(SeqId seq, uint32_t n_positions) const;

  // Takes back a copy that prepare() asked for and that could not be made: the sequence has its shared block again.
  void undo(SeqId seq, const BlockCopy& copy);

  // The rows prepared before are written.
  void advance(SeqId seq, uint32_t n_tokens) { cursors_[seq] += n_tokens; }

  // Lowers the cursor to n_positions and gives whole blocks behind it back.
  Status rollback(SeqId seq, uint32_t n_positions);

  // Plans the removal of positions [first, first + count); the table stays as it is until commit(). Rows below `first` keep their
  // place, the others slide down; blocks that are shared are not written to but replaced. Refuses what lies beyond the cursor, and a
  // demand for more blocks than are free.
  Result<KvRemoval> plan_removal(SeqId seq, uint32_t first, uint32_t count) const;

  // The rows of a removal have been moved; nothing may have happened to the tables since it was planned.
  void commit(const KvRemoval& removal);

  // The empty sequence dst begins with the first n_positions of src, in the same blocks.
  Status share_prefix(SeqId src, SeqId dst, uint32_t n_positions);

 private:
  int32_t entry(SeqId seq, uint32_t block) const { return table_[size_t{seq} * blocks_per_seq_ + block]; }
  int32_t& entry(SeqId seq, uint32_t block) { return table_[size_t{seq} * blocks_per_seq_ + block]; }
  void truncate(SeqId seq, uint32_t n_positions);
  void drop(SeqId seq, uint32_t block);
  void give_back(uint32_t id);

  uint32_t n_ctx_;
  uint32_t max_seqs_;
  uint32_t blocks_per_seq_;
  std::vector<int32_t> table_;
  std::vector<uint32_t> cursors_;
  std::vector<uint32_t> references_;  // by block
  std::vector<uint32_t> free_;        // stack; the lowest block is taken first
};

}  // namespace minfer
