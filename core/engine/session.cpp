#include "engine/session.hpp"

#include "base/out_of_memory.hpp"
#include "engine/memory/k_rotation.hpp"

namespace minfer {
namespace {

std::vector<Device*> kv_devices(const LoadedModel& model) {
  std::vector<Device*> devices;
  for (uint32_t d : model.placement().kv_device) devices.push_back(model.devices()[d]);
  return devices;
}

KvLayout kv_layout(const LoadedModel& model, const CParams& cparams) {
  return {cparams.kv_format, model.info().n_head_kv, model.info().head_dim, cparams.blocks_per_seq()};
}

}  // namespace

Session::Session(const LoadedModel& model, const CParams& cparams, size_t cache_capacity)
    : model_(model),
      last_turn_(model.device_turn(), std::defer_lock),
      cparams_(cparams),
      blocks_(cparams.n_ctx, cparams.max_seqs),
      kv_(kv_layout(model, cparams), kv_devices(model)),
      cache_(cache_capacity) {
  cparams_.placement_id = model.placement().id;
  for (Device* device : model.devices()) scratch_.emplace_back(*device);
}

Session::~Session() { last_turn_.lock(); }

Result<std::unique_ptr<Session>> Session::create(const LoadedModel& model, CParams cparams, size_t cache_capacity) {
  if (cparams.n_ctx == 0 || cparams.n_ctx > model.info().n_ctx_train)
    return invalid("n_ctx {} must be 1 to {}, the context length of the model", cparams.n_ctx, model.info().n_ctx_train);
  if (cparams.max_seqs == 0) return invalid("max_seqs must be at least 1");
  if (cache_capacity == 0) return invalid("the graph cache needs room for at least one graph");
  return catch_out_of_memory(
      [&]() -> Result<std::unique_ptr<Session>> { return std::unique_ptr<Session>(new Session(model, cparams, cache_capacity)); });
}

Status Session::check(std::span<const SeqChunk> chunks) const {
  if (chunks.empty()) return invalid("a step needs at least one chunk of tokens");
  for (size_t i = 0; i < chunks.size(); ++i) {
    const SeqChunk& chunk = chunks[i];
    if (chunk.seq >= cparams_.max_seqs) return invalid("sequence {} does not exist, the session has {}", chunk.seq, cparams_.max_seqs);
    if (chunk.tokens.empty()) return invalid("sequence {}: a chunk without tokens", chunk.seq);
    if (chunk.n_out > chunk.tokens.size())
      return invalid("sequence {}: {} output rows wanted of {} tokens", chunk.seq, chunk.n_out, chunk.tokens.size());
    // The first of three gates against positions beyond the context; the KV store in the backend and the caller's loop are the others.
    if (cursor(chunk.seq) + chunk.tokens.size() > cparams_.n_ctx)
      return invalid("sequence {}: position {} is beyond n_ctx {}", chunk.seq, cursor(chunk.seq) + chunk.tokens.size() - 1, cparams_.n_ctx);
    for (int32_t token : chunk.tokens)
      if (token < 0 || static_cast<uint32_t>(token) >= model_.info().n_vocab)
        return invalid("sequence {}: token {} is outside the vocabulary of {}", chunk.seq, token, model_.info().n_vocab);
    for (size_t j = 0; j < i; ++j)
      if (chunks[j].seq == chunk.seq) return invalid("sequence {} stands twice in one batch", chunk.seq);
  }
  return {};
}

void Session::fill_inputs(std::span<const SeqChunk> chunks) {
  const auto input = [&](InputKind kind) -> std::vector<int32_t>& { return inputs_[static_cast<size_t>(kind)]; };
  for (auto& values : inputs_) values.clear();
  int32_t row = 0;
  for (const SeqChunk& chunk : chunks) {
    const uint32_t first = cursor(chunk.seq);
    for (size_t i = 0; i < chunk.tokens.size(); ++i, ++row) {
      const auto position = static_cast<int32_t>(first + i);
      const auto seq = static_cast<int32_t>(chunk.seq);
      input(InputKind::kTokenIds).push_back(chunk.tokens[i]);
      input(InputKind::kPositions).push_back(position);
      input(InputKind::kRowSeq).push_back(seq);
      if (i + chunk.n_out < chunk.tokens.size()) continue;
      input(InputKind::kOutRows).push_back(row);
      input(InputKind::kOutPositions).push_back(position);
      input(InputKind::kOutRowSeq).push_back(seq);
    }
  }
}

Result<CompiledGraph*> Session::graph_for(const GraphParams& params) {
  if (CompiledGraph* found = cache_.find(params)) {
    ++stats_.reuses;
#ifndef NDEBUG
    MINFER_ASSIGN(const auto again, compile_graph(model_, params));
    if (const std::string difference = verify_structural(found->graph, again->graph); !difference.empty())
      return internal_error("equal parameters gave different graphs: {}", difference);
#endif
    if (!is_bound(*found, scratch_)) {
      if (Status bound = bind_graph(*found, model_, scratch_, kv_); !bound.ok()) return bound.error().in("re-map of a cached graph");
      ++stats_.remaps;
    }
    return found;
  }
  MINFER_ASSIGN(auto compiled, compile_graph(model_, params));
  MINFER_TRY(kv_.ensure());
  MINFER_TRY(bind_graph(*compiled, model_, scratch_, kv_));
  ++stats_.builds;
  if (on_build_) on_build_(*compiled);
  return &cache_.insert(std::move(compiled));
}

Result<Logits> Session::forward(std::span<const SeqChunk> chunks, const StopCheck* should_stop) {
  MINFER_TRY(check(chunks));
  const std::lock_guard turn(model_.device_turn());
  Result<Logits> logits = catch_out_of_memory([&] { return run_step(chunks, should_stop); });
  // The caller may now destroy the session or go on with other inputs: nothing of a failed step may still be under way.
  if (!logits.ok())
    for (Device* device : model_.devices()) (void)device->sync();
  return logits;
}

Result<Logits> Session::run_step(std::span<const SeqChunk> chunks, const StopCheck* should_stop) {
  uint32_t n_tokens = 0;
  uint32_t n_out = 0;
  for (const SeqChunk& chunk : chunks) {
    n_tokens += static_cast<uint32_t>(chunk.tokens.size());
    n_out += chunk.n_out;
  }
  last_ = nullptr;
  MINFER_ASSIGN(CompiledGraph * compiled, graph_for(make_graph_params(n_tokens, n_out, cparams_)));
  for (const SeqChunk& chunk : chunks) {
    MINFER_ASSIGN(const auto copies, blocks_.prepare(chunk.seq, static_cast<uint32_t>(chunk.tokens.size())));
    if (Status copied = kv_.copy_blocks(copies); !copied.ok()) {
      for (const BlockCopy& copy : copies) blocks_.undo(chunk.seq, copy);
      return copied.error().in(text("sequence {}: copy of a shared KV block", chunk.seq));
    }
  }
  fill_inputs(chunks);
  StepInputs step;
  for (size_t kind = 0; kind < kInputKinds; ++kind) step[kind] = std::as_bytes(std::span<const int32_t>(inputs_[kind]));
  step[static_cast<size_t>(InputKind::kBlockTable)] = std::as_bytes(blocks_.table());

  const NodeObserver* observer = cparams_.observe ? &observer_ : nullptr;
  MINFER_TRY(executor_.run(*compiled, model_.devices(), scratch_, step, should_stop, observer));
  Logits logits;
  logits.n_vocab = model_.info().n_vocab;
  if (!compiled->graph.outputs.empty()) {
    MINFER_ASSIGN(logits.values, executor_.read_output(*compiled, model_.devices(), scratch_, compiled->graph.outputs[0]));
    logits.n_rows = n_out;
  } else {
    for (Device* device : model_.devices()) MINFER_TRY(device->sync());
  }
  MINFER_TRY(model_.check_sources());
  for (const SeqChunk& chunk : chunks) blocks_.advance(chunk.seq, static_cast<uint32_t>(chunk.tokens.size()));
  last_ = compiled;
  return logits;
}

Status Session::find_rotations() {
  if (!rotations_.empty()) return {};
  // One row, no output: the smallest graph that stores K in every layer.
  MINFER_ASSIGN(const Graph graph, model_.build(make_graph_params(1, 0, cparams_)));
  MINFER_ASSIGN(const auto found, find_k_rotations(graph, model_.info().n_layers, model_.placement()));
  for (uint32_t layer = 0; layer < found.size(); ++layer)
    rotations_.push_back({found[layer], model_.weights(model_.placement().kv_device[layer])});
  return {};
}

Status Session::remove(SeqId seq, uint32_t first, uint32_t count) {
  const std::lock_guard turn(model_.device_turn());
  return catch_out_of_memory([&] { return remove_positions(seq, first, count); });
}

// Every list that moving needs is made before a row moves (KvStore::move_rows), so running out of memory changes nothing.
Status Session::remove_positions(SeqId seq, uint32_t first, uint32_t count) {
  MINFER_ASSIGN(const KvRemoval removal, blocks_.plan_removal(seq, first, count));
  if (count == 0) return {};
  if (removal.moves.empty()) return blocks_.rollback(seq, first);
  const std::string what = text("sequence {}: removal of positions {} to {}", seq, first, first + count - 1);
  if (Status found = find_rotations(); !found.ok()) return found.error().in(what);
  if (Status checked = kv_.check_removal(removal, rotations_); !checked.ok()) return checked.error().in(what);
  Status moved = kv_.move_rows(removal, rotations_);
  for (Device* device : model_.devices()) {  // what fails late belongs to this session, not to the next one to call the device
    Status done = device->sync();
    if (moved.ok()) moved = std::move(done);
  }
  if (!moved.ok()) {
    MINFER_TRY(blocks_.rollback(seq, first));
    return moved.error().in(text("{} failed half-way, {} positions are left", what, first));
  }
  blocks_.commit(removal);
  return {};
}

Status Session::export_kv(SeqId seq, uint32_t layer, std::span<std::byte> out) const {
  const uint32_t n_positions = cursor(seq);
  if (out.size() != kv_layer_bytes(n_positions))
    return invalid("sequence {}: layer {} has {} bytes of KV, room for {}", seq, layer, kv_layer_bytes(n_positions), out.size());
  if (n_positions == 0) return {};
  const std::lock_guard turn(model_.device_turn());
  return catch_out_of_memory([&] { return kv_.export_rows(layer, blocks_.rows_of(seq, n_positions), out); });
}

Status Session::import_kv(SeqId seq, uint32_t n_positions,
                          const std::function<Status(uint32_t layer, std::span<std::byte> bytes)>& read_layer) {
  if (cursor(seq) != 0) return invalid("sequence {} is not empty, it holds {} positions", seq, cursor(seq));
  Status done = catch_out_of_memory([&]() -> Status {
    {
      const std::lock_guard turn(model_.device_turn());
      MINFER_TRY(kv_.ensure());
    }
    MINFER_TRY(blocks_.prepare(seq, n_positions));
    const std::vector<KvRows> rows = blocks_.rows_of(seq, n_positions);
    std::vector<std::byte> bytes(kv_layer_bytes(n_positions));
    for (uint32_t layer = 0; layer < model_.info().n_layers; ++layer) {
      MINFER_TRY(read_layer(layer, bytes));  // may ask another session of the model, so it has no turn
      const std::lock_guard turn(model_.device_turn());
      if (Status imported = kv_.import_rows(layer, rows, bytes); !imported.ok()) return imported.error().in(text("KV of layer {}", layer));
    }
    blocks_.advance(seq, n_positions);
    return {};
  });
  if (!done.ok()) MINFER_TRY(blocks_.rollback(seq, 0));
  return done;
}

SessionStats Session::stats() const {
  SessionStats stats = stats_;
  stats.executor = executor_.stats();
  stats.kv_bytes = kv_.size_bytes();
  for (const Scratch& scratch : scratch_) stats.scratch_bytes += scratch.size_bytes();
  return stats;
}

}  // namespace minfer
