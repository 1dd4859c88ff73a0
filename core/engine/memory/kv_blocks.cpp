#include "engine/memory/kv_blocks.hpp"

#include <algorithm>
#include <functional>

#include "base/checked_math.hpp"

namespace minfer {

KvBlocks::KvBlocks(uint32_t n_ctx, uint32_t max_seqs)
    : n_ctx_(n_ctx),
      max_seqs_(max_seqs),
      blocks_per_seq_(static_cast<uint32_t>(ceil_div(n_ctx, kKvBlockPositions))),
      table_(size_t{max_seqs} * blocks_per_seq_, -1),
      cursors_(max_seqs, 0),
      references_(blocks_per_seq_, 0) {
  for (uint32_t block = blocks_per_seq_; block-- > 0;) free_.push_back(block);
}

Result<std::vector<BlockCopy>> KvBlocks::prepare(SeqId seq, uint32_t n_tokens) {
  if (seq >= max_seqs_) return invalid("sequence {} does not exist, the session has {}", seq, max_seqs_);
  const uint64_t end = uint64_t{cursors_[seq]} + n_tokens;
  if (end > n_ctx_) return invalid("position {} of sequence {} is beyond n_ctx {}", end - 1, seq, n_ctx_);
  if (n_tokens == 0) return std::vector<BlockCopy>{};
  const uint32_t first = cursors_[seq] / kKvBlockPositions;
  const auto last = static_cast<uint32_t>((end - 1) / kKvBlockPositions);
  const auto needs_block = [&](uint32_t block) {
    const int32_t id = entry(seq, block);
    return id < 0 || references_[static_cast<uint32_t>(id)] > 1;
  };
  uint32_t wanted = 0;
  for (uint32_t block = first; block <= last; ++block) wanted += needs_block(block);
  if (wanted > free_.size())
    return make_error(ErrorCode::kOutOfMemory, "sequence {} needs {} KV blocks of {} positions, {} are free (n_ctx {})", seq, wanted,
                      kKvBlockPositions, free_.size(), n_ctx_);
  std::vector<BlockCopy> copies;
  for (uint32_t block = first; block <= last; ++block) {
    if (!needs_block(block)) continue;
    const uint32_t fresh = free_.back();
    free_.pop_back();
    references_[fresh] = 1;
    const int32_t old = entry(seq, block);
    if (old >= 0) {
      --references_[static_cast<uint32_t>(old)];
      const uint32_t kept = cursors_[seq] - block * kKvBlockPositions;  // only the cursor's own block can hold written rows
      if (block == first && kept > 0) copies.push_back({static_cast<uint32_t>(old), fresh, kept});
    }
    entry(seq, block) = static_cast<int32_t>(fresh);
  }
  return copies;
}

void KvBlocks::drop(SeqId seq, uint32_t block) {
  int32_t& id = entry(seq, block);
  if (id < 0) return;
  give_back(static_cast<uint32_t>(id));
  id = -1;
}

void KvBlocks::give_back(uint32_t id) {
  if (--references_[id] == 0) free_.insert(std::lower_bound(free_.begin(), free_.end(), id, std::greater<>()), id);
}

std::vector<KvRows> KvBlocks::rows_of(SeqId seq, uint32_t n_positions) const {
  std::vector<KvRows> rows;
  for (uint32_t first = 0; first < n_positions; first += kKvBlockPositions)
    rows.push_back({static_cast<uint32_t>(entry(seq, first / kKvBlockPositions)), 0, std::min(kKvBlockPositions, n_positions - first)});
  return rows;
}

void KvBlocks::undo(SeqId seq, const BlockCopy& copy) {
  give_back(copy.dst_block);
  ++references_[copy.src_block];
  entry(seq, cursors_[seq] / kKvBlockPositions) = static_cast<int32_t>(copy.src_block);
}

Status KvBlocks::rollback(SeqId seq, uint32_t n_positions) {
  if (seq >= max_seqs_) return invalid("sequence {} does not exist, the session has {}", seq, max_seqs_);
  if (n_positions > cursors_[seq]) return invalid("sequence {} holds {} positions, cannot go back to {}", seq, cursors_[seq], n_positions);
  truncate(seq, n_positions);
  return {};
}

void KvBlocks::truncate(SeqId seq, uint32_t n_positions) {
  cursors_[seq] = n_positions;
  for (auto block = static_cast<uint32_t>(ceil_div(n_positions, kKvBlockPositions)); block < blocks_per_seq_; ++block) drop(seq, block);
}

Result<KvRemoval> KvBlocks::plan_removal(SeqId seq, uint32_t first, uint32_t count) const {
  if (seq >= max_seqs_) return invalid("sequence {} does not exist, the session has {}", seq, max_seqs_);
  if (first > cursors_[seq] || count > cursors_[seq] - first)
    return invalid("sequence {} holds {} positions, cannot remove {} from position {} on", seq, cursors_[seq], count, first);
  KvRemoval removal{seq, first, count, {}, {}, {}};
  const uint32_t end = cursors_[seq] - count;
  if (count == 0 || first == end) return removal;  // nothing lies above

  const uint32_t first_block = first / kKvBlockPositions;
  std::vector<uint32_t> target;  // by block of the table, from first_block on
  for (uint32_t block = first_block; block <= (end - 1) / kKvBlockPositions; ++block) {
    const auto old = static_cast<uint32_t>(entry(seq, block));
    target.push_back(old);
    if (references_[old] == 1) continue;
    if (removal.replaced.size() == free_.size())
      return make_error(ErrorCode::kOutOfMemory, "sequence {}: a removal must replace shared KV blocks, and none is free of {}", seq,
                        references_.size());
    target.back() = free_[free_.size() - 1 - removal.replaced.size()];
    removal.replaced.emplace_back(block, target.back());
    if (block == first_block && first % kKvBlockPositions > 0)
      removal.kept.push_back({old, 0, target.back(), 0, first % kKvBlockPositions});
  }
  for (uint32_t to = first; to < end;) {
    const uint32_t from = to + count;
    const uint32_t to_row = to % kKvBlockPositions, from_row = from % kKvBlockPositions;
    const uint32_t n_rows = std::min({kKvBlockPositions - to_row, kKvBlockPositions - from_row, end - to});
    removal.moves.push_back({static_cast<uint32_t>(entry(seq, from / kKvBlockPositions)), from_row,
                             target[to / kKvBlockPositions - first_block], to_row, n_rows});
    to += n_rows;
  }
  return removal;
}

void KvBlocks::commit(const KvRemoval& removal) {
  for (const auto& [block, fresh] : removal.replaced) {
    free_.pop_back();  // it is `fresh`: taken from the top, in this order
    references_[fresh] = 1;
    --references_[static_cast<uint32_t>(entry(removal.seq, block))];
    entry(removal.seq, block) = static_cast<int32_t>(fresh);
  }
  truncate(removal.seq, cursors_[removal.seq] - removal.count);
}

Status KvBlocks::share_prefix(SeqId src, SeqId dst, uint32_t n_positions) {
  if (src >= max_seqs_ || dst >= max_seqs_) return invalid("sequence {} does not exist, the session has {}", std::max(src, dst), max_seqs_);
  if (src == dst) return invalid("sequence {} cannot share a prefix with itself", src);
  if (cursors_[dst] != 0) return invalid("sequence {} already holds {} positions, a shared prefix must come first", dst, cursors_[dst]);
  if (n_positions == 0 || n_positions > cursors_[src])
    return invalid("sequence {} holds {} positions, cannot share {}", src, cursors_[src], n_positions);
  for (uint32_t block = 0; block < ceil_div(n_positions, kKvBlockPositions); ++block) {
    drop(dst, block);  // a block prepared but never written
    entry(dst, block) = entry(src, block);
    ++references_[static_cast<uint32_t>(entry(src, block))];
  }
  cursors_[dst] = n_positions;
  return {};
}

}  // namespace minfer
