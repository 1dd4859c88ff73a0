// A session: one graph cache, one scratch buffer per device, one KV store, up to max_seqs sequences of one model.
//
// forward() is the whole step: params -> cached graph, or build -> inputs filled -> splits run -> logits. Not thread-safe;
// sessions of one model may run on different threads: their steps take turns on the model's devices, in the order of arrival, and
// give the bits that they give alone.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/memory/kv_blocks.hpp"
#include "engine/memory/kv_store.hpp"
#include "engine/reuse/graph_cache.hpp"
#include "engine/schedule/executor.hpp"

namespace minfer {

// Tokens appended to one sequence, at its cursor. Logits are wanted for the last n_out of them.
struct SeqChunk {
  SeqId seq = 0;
  std::span<const int32_t> tokens;
  uint32_t n_out = 0;
};

// Rows of logits in batch order, ascending. Valid until the next call on the session.
struct Logits {
  std::span<const float> values;
  uint32_t n_rows = 0;
  uint32_t n_vocab = 0;
  std::span<const float> row(uint32_t i) const { return values.subspan(size_t{i} * n_vocab, n_vocab); }
};

struct SessionStats {
  uint64_t builds = 0;
  uint64_t reuses = 0;
  uint64_t remaps = 0;  // reuses whose plans had to be bound again because the scratch had moved
  uint64_t scratch_bytes = 0;
  uint64_t kv_bytes = 0;
  ExecutorStats executor;
};

class Session {
 public:
  // The model must outlive the session. cparams.placement_id is filled in here.
  static Result<std::unique_ptr<Session>> create(const LoadedModel& model, CParams cparams, size_t cache_capacity = 8);
  ~Session();

  // Appends the chunks, each to its own sequence (a sequence at most once per call). Refuses, changing nothing, a position at or
  // beyond n_ctx, a token outside the vocabulary, an n_out larger than its chunk. After kCancelled or a device's error the cursors are
  // where they were.
  Result<Logits> forward(std::span<const SeqChunk> chunks, const StopCheck* should_stop = nullptr);

  uint32_t cursor(SeqId seq) const { return blocks_.cursor(seq); }
  Status rollback(SeqId seq, uint32_t n_positions) { return blocks_.rollback(seq, n_positions); }
  // Takes positions [first, first + count) out of a sequence: the rows above slide down, their keys turned by -count, so that the sequence
  // holds cursor - count positions. Removing the tail is a rollback, exact to the bit; otherwise the rows that moved keep what they
  // learnt from the removed ones, and their keys are rounded once more: logits afterwards are near those of a fresh prefill, not
  // equal to them. Sequences that share blocks are not touched. Refuses, changing nothing, what lies beyond the cursor, a model whose
  // positions are not rotations alone, a backend that cannot turn keys, and a demand for KV blocks that are not free. A device that
  // fails in the middle of the move leaves the sequence with positions 0..first-1.
  Status remove(SeqId seq, uint32_t first, uint32_t count);
  Status share_prefix(SeqId src, SeqId dst, uint32_t n_positions) { return blocks_.share_prefix(src, dst, n_positions); }

  // Bytes of one layer's K and V rows of n positions in the form that backends share (Device::kv_export): all K rows, then all V rows.
  uint64_t kv_layer_bytes(uint32_t n_positions) const { return 2 * n_positions * kv_row_bytes(kv_.layout()); }
  // The rows of positions [0, cursor) of a sequence in one layer; `out` has kv_layer_bytes(cursor) bytes.
  Status export_kv(SeqId seq, uint32_t layer, std::span<std::byte> out) const;
  // Fills an empty sequence with n positions: read_layer(layer, bytes) is called for each layer in turn and fills kv_layer_bytes(n)
  // bytes. The sequence goes on as if the positions had been computed here. After a failure it is empty.
  Status import_kv(SeqId seq, uint32_t n_positions, const std::function<Status(uint32_t layer, std::span<std::byte> bytes)>& read_layer);

  // The KV memory and its tables as they stand, for those who look at rows.
  const KvStore& kv() const { return kv_; }
  const KvBlocks& blocks() const { return blocks_; }

  const CParams& cparams() const { return cparams_; }
  const LoadedModel& model() const { return model_; }
  SessionStats stats() const;
  // The graph of the last forward; nullptr before the first.
  const CompiledGraph* last_graph() const { return last_; }
  // Called when a graph has been built.
  void on_build(std::function<void(const CompiledGraph&)> callback) { on_build_ = std::move(callback); }
  // Sees every node when cparams.observe is set.
  void set_observer(NodeObserver observer) { observer_ = std::move(observer); }

 private:
  Session(const LoadedModel& model, const CParams& cparams, size_t cache_capacity);

  Status check(std::span<const SeqChunk> chunks) const;
  void fill_inputs(std::span<const SeqChunk> chunks);
  Status find_rotations();
  Status remove_positions(SeqId seq, uint32_t first, uint32_t count);
  Result<CompiledGraph*> graph_for(const GraphParams& params);
  Result<Logits> run_step(std::span<const SeqChunk> chunks, const StopCheck* should_stop);

  const LoadedModel& model_;
  std::unique_lock<TurnLock> last_turn_;  // taken by the destructor; goes behind all that is freed on devices
  CParams cparams_;
  std::vector<Scratch> scratch_;  // by device
  KvBlocks blocks_;
  KvStore kv_;
  std::vector<KvStore::LayerRotation> rotations_;  // by layer; empty until the first removal that moves rows
  GraphCache cache_;                               // behind scratch_ and kv_: its plans go first
  Executor executor_;
  std::array<std::vector<int32_t>, kInputKinds> inputs_;  // kBlockTable is read from blocks_ in place
  SessionStats stats_;
  CompiledGraph* last_ = nullptr;
  std::function<void(const CompiledGraph&)> on_build_;
  NodeObserver observer_;
};

}  // namespace minfer
