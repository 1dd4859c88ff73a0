// KV bookkeeping and memory, scratch, graph cache and parameters: everything a session keeps between steps.
#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <set>

#include "engine/reuse/graph_cache.hpp"
#include "support/toy_architecture.hpp"

namespace minfer::test {
namespace {

std::vector<int32_t> row(const KvBlocks& blocks, SeqId seq, size_t per_seq) {
  const auto table = blocks.table();
  return {table.begin() + static_cast<std::ptrdiff_t>(seq * per_seq), table.begin() + static_cast<std::ptrdiff_t>((seq + 1) * per_seq)};
}

std::vector<BlockCopy> grow(KvBlocks& blocks, SeqId seq, uint32_t n) {
  auto copies = blocks.prepare(seq, n);
  REQUIRE(copies.ok());
  blocks.advance(seq, n);
  return *copies;
}

TEST_CASE("engine/kv_blocks: takes the lowest free block one for every 64 positions and gives back what is behind the cursor") {
  KvBlocks blocks(256, 2);
  CHECK(blocks.n_free() == 4);
  CHECK(row(blocks, 0, 4) == std::vector<int32_t>{-1, -1, -1, -1});
  CHECK(grow(blocks, 0, 64).empty());
  CHECK(row(blocks, 0, 4) == std::vector<int32_t>{0, -1, -1, -1});
  grow(blocks, 1, 1);
  grow(blocks, 0, 1);
  CHECK(row(blocks, 0, 4) == std::vector<int32_t>{0, 2, -1, -1});
  CHECK(row(blocks, 1, 4) == std::vector<int32_t>{1, -1, -1, -1});
  CHECK(blocks.n_free() == 1);
  REQUIRE(blocks.rollback(0, 64).ok());
  CHECK(row(blocks, 0, 4) == std::vector<int32_t>{0, -1, -1, -1});
  REQUIRE(blocks.rollback(0, 1).ok());  // the first block still holds a row
  CHECK(blocks.n_free() == 2);
  REQUIRE(blocks.rollback(0, 0).ok());
  CHECK(blocks.n_free() == 3);
  grow(blocks, 1, 64 + 1);
  CHECK(row(blocks, 1, 4) == std::vector<int32_t>{1, 0, -1, -1});  // given back last, lowest first
  CHECK(blocks.cursor(1) == 66);
  CHECK(blocks.prepare(1, 0)->empty());
}

TEST_CASE("engine/kv_blocks: a shared prefix is read in place and copied before a write") {
  KvBlocks blocks(512, 3);
  grow(blocks, 0, 100);
  REQUIRE(blocks.share_prefix(0, 1, 100).ok());
  REQUIRE(blocks.share_prefix(0, 2, 70).ok());
  CHECK(blocks.n_free() == 6);  // sharing took nothing
  CHECK(row(blocks, 1, 8) == row(blocks, 0, 8));
  CHECK(blocks.cursor(2) == 70);
  // The first writer copies the rows below its cursor in the block it writes into, and no other block.
  CHECK(grow(blocks, 1, 1) == std::vector<BlockCopy>{{1, 2, 36}});
  CHECK(row(blocks, 1, 8)[0] == 0);
  CHECK(row(blocks, 1, 8)[1] == 2);
  CHECK(grow(blocks, 1, 1).empty());  // private now
  CHECK(grow(blocks, 2, 1) == std::vector<BlockCopy>{{1, 3, 6}});
  CHECK(grow(blocks, 0, 1).empty());  // the donor is the last owner
  CHECK(blocks.n_free() == 4);
  // The donor goes: the shared first block stays with the others.
  REQUIRE(blocks.rollback(0, 0).ok());
  CHECK(blocks.n_free() == 5);
  CHECK(row(blocks, 1, 8)[0] == 0);
  REQUIRE(blocks.rollback(1, 0).ok());
  REQUIRE(blocks.rollback(2, 0).ok());
  CHECK(blocks.n_free() == 8);
}

TEST_CASE("engine/kv_blocks: a donor that writes into a shared block takes the copy itself") {
  KvBlocks blocks(256, 2);
  grow(blocks, 0, 10);
  REQUIRE(blocks.share_prefix(0, 1, 5).ok());
  CHECK(grow(blocks, 0, 1) == std::vector<BlockCopy>{{0, 1, 10}});
  CHECK(row(blocks, 1, 4)[0] == 0);
  CHECK(grow(blocks, 1, 1).empty());
}

TEST_CASE("engine/kv_blocks: a write at a block's edge or after a rollback copies only what is kept") {
  KvBlocks blocks(512, 2);
  grow(blocks, 0, 128);
  REQUIRE(blocks.share_prefix(0, 1, 128).ok());
  CHECK(grow(blocks, 1, 1).empty());  // a fresh block: nothing shared is touched
  REQUIRE(blocks.rollback(1, 128).ok());
  // Twice shrunk: into the second shared block, then to its very first row, then into the first block.
  REQUIRE(blocks.rollback(1, 100).ok());
  CHECK(grow(blocks, 1, 1) == std::vector<BlockCopy>{{1, 2, 36}});
  REQUIRE(blocks.rollback(1, 64).ok());
  CHECK(grow(blocks, 1, 1).empty());
  REQUIRE(blocks.rollback(1, 3).ok());
  CHECK(grow(blocks, 1, 100) == std::vector<BlockCopy>{{0, 2, 3}});
  CHECK(blocks.cursor(0) == 128);
}

TEST_CASE("engine/kv_blocks: undo gives the shared block back to a sequence whose copy failed") {
  KvBlocks blocks(256, 2);
  grow(blocks, 0, 10);
  REQUIRE(blocks.share_prefix(0, 1, 10).ok());
  const uint32_t free = blocks.n_free();
  const auto copies = blocks.prepare(1, 1);
  REQUIRE(copies->size() == 1);
  blocks.undo(1, (*copies)[0]);
  CHECK(blocks.n_free() == free);
  CHECK(row(blocks, 1, 4) == row(blocks, 0, 4));
  CHECK(*blocks.prepare(1, 1) == *copies);  // asked for again
}

TEST_CASE("engine/kv_blocks: refusals say why and change nothing") {
  KvBlocks blocks(128, 3);
  grow(blocks, 0, 65);
  const std::vector<int32_t> before(blocks.table().begin(), blocks.table().end());
  const auto refused = [&](const Status& status, const char* words) {
    REQUIRE_FALSE(status.ok());
    CHECK_THAT(status.error().text, Catch::Contains(words));
    CHECK(std::equal(before.begin(), before.end(), blocks.table().begin()));
    CHECK(blocks.cursor(0) == 65);
    CHECK(blocks.cursor(1) == 0);
    CHECK(blocks.n_free() == 0);
  };
  refused(blocks.prepare(0, 64).status(), "position 128 of sequence 0 is beyond n_ctx 128");
  refused(blocks.prepare(1, 1).status(), "sequence 1 needs 1 KV blocks of 64 positions, 0 are free");
  refused(blocks.prepare(3, 1).status(), "sequence 3 does not exist, the session has 3");
  refused(blocks.rollback(3, 0), "sequence 3 does not exist");
  refused(blocks.rollback(0, 66), "sequence 0 holds 65 positions, cannot go back to 66");
  refused(blocks.share_prefix(0, 3, 1), "sequence 3 does not exist");
  refused(blocks.share_prefix(0, 0, 1), "cannot share a prefix with itself");
  refused(blocks.share_prefix(0, 1, 0), "sequence 0 holds 65 positions, cannot share 0");
  refused(blocks.share_prefix(0, 1, 66), "sequence 0 holds 65 positions, cannot share 66");
  refused(blocks.share_prefix(1, 0, 1), "sequence 0 already holds 65 positions");
  // A copy on write without room.
  KvBlocks full(64, 2);
  grow(full, 0, 10);
  REQUIRE(full.share_prefix(0, 1, 10).ok());
  const auto copy = full.prepare(1, 1);
  REQUIRE_FALSE(copy.ok());
  CHECK(copy.error().code == ErrorCode::kOutOfMemory);
  CHECK(row(full, 1, 1) == row(full, 0, 1));
}

TEST_CASE("engine/kv_blocks: random use keeps every sequence's rows against a plain model") {
  std::mt19937 random(11);
  const auto below = [&](uint32_t n) { return n ? static_cast<uint32_t>(random() % n) : 0; };
  uint32_t copied = 0, refused = 0, shared = 0;
  for (int round = 0; round < 30; ++round) {
    constexpr uint32_t kSeqs = 4;
    const uint32_t n_ctx = 300 + below(400);
    const uint32_t per_seq = (n_ctx + 63) / 64;
    KvBlocks blocks(n_ctx, kSeqs);
    std::vector<std::vector<int>> memory(per_seq, std::vector<int>(64, -1));  // what a backend holds: stamp of each row
    std::vector<std::vector<int>> model(kSeqs);                               // what each sequence must read
    int stamp = 0;
    for (int i = 0; i < 300; ++i) {
      const SeqId seq = below(kSeqs);
      switch (below(4)) {
        case 0:
        case 1: {
          const uint32_t n = 1 + below(below(3) ? 5 : 150);
          auto copies = blocks.prepare(seq, n);
          if (!copies.ok()) {
            ++refused;
            break;
          }
          for (const BlockCopy& copy : *copies) {
            ++copied;
            std::copy_n(memory[copy.src_block].begin(), copy.n_rows, memory[copy.dst_block].begin());
          }
          for (uint32_t p = blocks.cursor(seq); p < blocks.cursor(seq) + n; ++p) {
            const int32_t block = blocks.table()[seq * per_seq + p / 64];
            REQUIRE(block >= 0);
            memory[static_cast<uint32_t>(block)][p % 64] = stamp;
            model[seq].push_back(stamp++);
          }
          blocks.advance(seq, n);
          break;
        }
        case 2: {
          const uint32_t to = below(3) ? below(blocks.cursor(seq) + 1) : 0;
          REQUIRE(blocks.rollback(seq, to).ok());
          model[seq].resize(to);
          break;
        }
        case 3: {
          const SeqId dst = below(kSeqs);
          const uint32_t n = below(blocks.cursor(seq) + 2);
          const bool allowed = seq != dst && n > 0 && n <= model[seq].size() && model[dst].empty();
          REQUIRE(blocks.share_prefix(seq, dst, n).ok() == allowed);
          if (allowed) model[dst].assign(model[seq].begin(), model[seq].begin() + n);
          shared += allowed;
          break;
        }
      }
      std::set<int32_t> used;
      for (SeqId s = 0; s < kSeqs; ++s) {
        REQUIRE(blocks.cursor(s) == model[s].size());
        for (uint32_t p = 0; p < model[s].size(); ++p) {
          const int32_t block = blocks.table()[s * per_seq + p / 64];
          if (block < 0 || memory[static_cast<uint32_t>(block)][p % 64] != model[s][p]) FAIL("sequence " << s << " lost position " << p);
        }
        for (uint32_t b = 0; b < per_seq; ++b)
          if (const int32_t block = blocks.table()[s * per_seq + b]; block >= 0) used.insert(block);
      }
      REQUIRE(blocks.n_free() + used.size() == per_seq);
    }
  }
  CHECK(copied > 100);
  CHECK(refused > 100);
  CHECK(shared > 100);
}

TEST_CASE("engine/kv_store: regions are made once or not at all and copies reach every layer") {
  ReferenceDevice a, b;
  KvStore store({KvFormat::kF32, 2, 4, 3}, {&a, &b, &a});
  CHECK(store.layers().empty());
  a.fail_alloc = 3;  // the last region of layer 2
  const Status failed = store.ensure();
  REQUIRE_FALSE(failed.ok());
  CHECK_THAT(failed.error().text, Catch::Contains("KV cache, layer 2 of 3, 192 positions on reference"));
  CHECK(store.layers().empty());
  CHECK(store.size_bytes() == 0);
  REQUIRE(store.ensure().ok());
  REQUIRE(store.layers().size() == 3);
  CHECK(store.size_bytes() == 3u * 2 * 3 * 64 * 2 * 4 * 4);
  const uint64_t allocs = a.counters.allocs;
  const Buffer* k = store.layers()[0].k;
  REQUIRE(store.ensure().ok());
  CHECK(a.counters.allocs == allocs);
  CHECK(store.layers()[0].k == k);

  const BlockCopy copy{2, 0, 5};
  for (const KvLayer& layer : store.layers())
    for (Buffer* region : {layer.k, layer.v})
      for (int i = 0; i < 3 * 64 * 8; ++i) reference_memory(*region)[i] = static_cast<float>(i);
  REQUIRE(store.copy_blocks({&copy, 1}).ok());
  for (const KvLayer& layer : store.layers())
    for (Buffer* region : {layer.k, layer.v}) {
      const float* cell = reference_memory(*region);
      CHECK(cell[0] == 2 * 64 * 8);
      CHECK(cell[5 * 8 - 1] == 2 * 64 * 8 + 5 * 8 - 1);
      CHECK(cell[5 * 8] == 5 * 8);  // the row behind
    }
  CHECK(a.counters.kv_copies == 2);
  CHECK(b.counters.kv_copies == 1);
  REQUIRE(store.copy_blocks({}).ok());
  CHECK(b.counters.kv_copies == 1);
}

TEST_CASE("engine/scratch: grows only waits for the device first and counts its generations") {
  ReferenceDevice device;
  Scratch scratch(device);
  REQUIRE(scratch.reserve(0).ok());
  CHECK(scratch.buffer() == nullptr);
  CHECK(scratch.generation() == 0);
  REQUIRE(scratch.reserve(1000).ok());
  CHECK(scratch.generation() == 1);
  CHECK(scratch.size_bytes() == 1000);
  const Buffer* buffer = scratch.buffer();
  REQUIRE(scratch.reserve(1000).ok());
  REQUIRE(scratch.reserve(10).ok());
  CHECK(scratch.buffer() == buffer);
  CHECK(scratch.generation() == 1);
  const uint64_t syncs = device.counters.syncs;
  REQUIRE(scratch.reserve(1001).ok());
  CHECK(device.counters.syncs == syncs + 1);
  CHECK(scratch.generation() == 2);
  device.fail_alloc = 0;
  const Status failed = scratch.reserve(5u << 20);
  REQUIRE_FALSE(failed.ok());
  CHECK_THAT(failed.error().text, Catch::Contains("scratch of 5 MiB on reference"));
  CHECK(scratch.buffer() == nullptr);
  CHECK(scratch.generation() == 3);  // what was bound before is stale
  REQUIRE(scratch.reserve(8).ok());
  CHECK(scratch.size_bytes() == 8);
  CHECK(scratch.generation() == 4);
}

TEST_CASE("engine/graph_cache: keeps the eight most recently used graphs") {
  GraphCache cache;
  const auto params = [](uint32_t n) { return make_graph_params(n, 1, {}); };
  const auto insert = [&](uint32_t n) {
    auto graph = std::make_unique<CompiledGraph>();
    graph->params = params(n);
    graph->uid = n;
    cache.insert(std::move(graph));
  };
  for (uint32_t n = 1; n <= 8; ++n) insert(n);
  REQUIRE(cache.find(params(1)) != nullptr);  // 1 is fresh again, 2 is the oldest
  CHECK(cache.find(params(1))->uid == 1);
  insert(9);
  CHECK(cache.size() == 8);
  CHECK(cache.find(params(2)) == nullptr);
  for (uint32_t n : {1u, 3u, 4u, 5u, 6u, 7u, 8u, 9u}) CHECK(cache.find(params(n)) != nullptr);
  insert(10);
  CHECK(cache.find(params(1)) == nullptr);  // the first of those asked for above
}

TEST_CASE("engine/graph_params: a graph is a decode graph iff it has one row") {
  CHECK(make_graph_params(1, 1, {}).gtype == GraphType::kDecode);
  CHECK(make_graph_params(1, 0, {}).gtype == GraphType::kDecode);
  CHECK(make_graph_params(2, 1, {}).gtype == GraphType::kPrefill);
  CHECK(make_graph_params(2, 1, {}).weights_version == 1);
  for (const auto& [n_ctx, n_blocks] : std::map<uint32_t, uint32_t>{{1, 1}, {64, 1}, {65, 2}, {4096, 64}}) {
    CParams cparams;
    cparams.n_ctx = n_ctx;
    CHECK(cparams.blocks_per_seq() == n_blocks);
  }
}

TEST_CASE("engine/loaded_model: each device gets its own weights once and a failed import names the device") {
  ToyArchitecture architecture;
  ReferenceOptions gpu_options;
  gpu_options.name = "gpu";
  gpu_options.host = false;
  ReferenceDevice gpu(gpu_options), cpu;
  std::vector<Device*> devices = {&gpu, &cpu};
  auto placement = place_model(architecture, devices, {1, {}}, {}, toy_cparams());
  REQUIRE(placement.ok());
  std::multiset<uint32_t> done;
  auto model = LoadedModel::load(architecture, devices, *placement, architecture.weight_data(), [&](uint32_t id) { done.insert(id); });
  REQUIRE(model.ok());
  CHECK(done.size() == architecture.weights().size());
  CHECK(std::set<uint32_t>(done.begin(), done.end()).size() == done.size());
  uint64_t total = 0;
  for (const WeightInfo& info : architecture.weights()) total += info.shape.elements() * 4;
  CHECK((*model)->weights(0)->own_bytes() + (*model)->weights(1)->own_bytes() == total);
  CHECK((*model)->weights(0)->own_bytes() > 0);

  auto data = architecture.weight_data();
  data[1] = data[1].subspan(4);
  auto cut = LoadedModel::load(architecture, devices, *placement, data, {});
  REQUIRE_FALSE(cut.ok());
  CHECK_THAT(cut.error().text, Catch::Contains("importing weights on gpu: weight blk.0.attn_norm"));
  data.pop_back();
  auto missing = LoadedModel::load(architecture, devices, *placement, data, {});
  REQUIRE_FALSE(missing.ok());
  CHECK_THAT(missing.error().text, Catch::Contains("data of 26 weights given, the model has 27"));
}

}  // namespace
}  // namespace minfer::test
