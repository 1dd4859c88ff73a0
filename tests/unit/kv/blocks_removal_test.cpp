// The bookkeeping of a removal, against a model that moves labels instead of rows.
#include <catch2/catch.hpp>
#include <map>

#include "engine/memory/kv_blocks.hpp"

using namespace minfer;

namespace {

// What stands in each cell: (sequence that wrote it, position it was written at).
using Label = std::pair<uint32_t, uint32_t>;
using Cells = std::map<uint32_t, Label>;

uint32_t cell(const KvBlocks& blocks, uint32_t blocks_per_seq, SeqId seq, uint32_t position) {
  return static_cast<uint32_t>(blocks.table()[seq * blocks_per_seq + position / 64]) * 64 + position % 64;
}

void copy_rows(Cells& cells, const std::vector<KvRowCopy>& copies) {
  for (const KvRowCopy& copy : copies) {
    REQUIRE(copy.src_row + copy.n_rows <= 64);
    REQUIRE(copy.dst_row + copy.n_rows <= 64);
    for (uint32_t i = 0; i < copy.n_rows; ++i)
      cells[copy.dst_block * 64 + copy.dst_row + i] = cells.at(copy.src_block * 64 + copy.src_row + i);
  }
}

struct Model {
  uint32_t n_ctx, n_seqs, width;
  KvBlocks blocks;
  Cells cells;
  std::map<SeqId, std::vector<Label>> expected;

  Model(uint32_t ctx, uint32_t seqs) : n_ctx(ctx), n_seqs(seqs), width((ctx + 63) / 64), blocks(ctx, seqs) {}

  void append(SeqId seq, uint32_t n) {
    const auto copies = blocks.prepare(seq, n);
    REQUIRE(copies.ok());
    for (const BlockCopy& copy : *copies) copy_rows(cells, {{copy.src_block, 0, copy.dst_block, 0, copy.n_rows}});
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t position = blocks.cursor(seq) + i;
      cells[cell(blocks, width, seq, position)] = {seq, position};
      expected[seq].push_back({seq, position});
    }
    blocks.advance(seq, n);
  }
  void share(SeqId src, SeqId dst, uint32_t n) {
    REQUIRE(blocks.share_prefix(src, dst, n).ok());
    expected[dst].assign(expected[src].begin(), expected[src].begin() + n);
  }
  void remove(SeqId seq, uint32_t first, uint32_t count) {
    const auto removal = blocks.plan_removal(seq, first, count);
    REQUIRE(removal.ok());
    copy_rows(cells, removal->kept);
    copy_rows(cells, removal->moves);
    blocks.commit(*removal);
    expected[seq].erase(expected[seq].begin() + first, expected[seq].begin() + first + count);
  }
  void check() {
    for (SeqId seq = 0; seq < n_seqs; ++seq) {
      REQUIRE(blocks.cursor(seq) == expected[seq].size());
      for (uint32_t p = 0; p < blocks.cursor(seq); ++p) {
        INFO("sequence " << seq << " position " << p);
        REQUIRE(cells.at(cell(blocks, width, seq, p)) == expected[seq][p]);
      }
    }
  }
};

}  // namespace

TEST_CASE("engine/kv_blocks: a removal leaves every sequence with its own rows in order") {
  uint64_t state = 1;
  const auto random = [&](uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state >> 33) % below);
  };
  uint32_t moved = 0, replaced = 0;
  for (int round = 0; round < 200; ++round) {
    Model m(64 * 8, 3);
    m.append(0, 65 + random(200));
    m.share(0, 1, 1 + random(m.blocks.cursor(0)));
    if (random(2)) m.append(1, 1 + random(70));
    m.append(2, 1 + random(60));
    for (int step = 0; step < 4; ++step) {
      const SeqId seq = random(3);
      if (m.blocks.cursor(seq) == 0) continue;
      const uint32_t first = random(m.blocks.cursor(seq)), count = random(m.blocks.cursor(seq) - first + 1);
      const auto plan = m.blocks.plan_removal(seq, first, count);
      if (!plan.ok()) {
        CHECK(plan.error().code == ErrorCode::kOutOfMemory);
        continue;
      }
      moved += !plan->moves.empty();
      replaced += !plan->replaced.empty();
      m.remove(seq, first, count);
      m.check();
    }
    for (SeqId seq = 0; seq < 3; ++seq) REQUIRE(m.blocks.rollback(seq, 0).ok());
    CHECK(m.blocks.n_free() == 8);
  }
  CHECK(moved > 200);
  CHECK(replaced > 50);
}

TEST_CASE("engine/kv_blocks: a planned removal changes nothing") {
  Model m(320, 2);
  m.append(0, 150);
  m.share(0, 1, 100);
  const std::vector<int32_t> table(m.blocks.table().begin(), m.blocks.table().end());
  const uint32_t n_free = m.blocks.n_free();
  const auto removal = m.blocks.plan_removal(0, 30, 70);
  REQUIRE(removal.ok());
  CHECK(removal->kept == std::vector<KvRowCopy>{{0, 0, 3, 0, 30}});
  CHECK(removal->moves == std::vector<KvRowCopy>{{1, 36, 3, 30, 28}, {2, 0, 3, 58, 6}, {2, 6, 4, 0, 16}});
  CHECK(std::vector<int32_t>(m.blocks.table().begin(), m.blocks.table().end()) == table);
  CHECK(m.blocks.n_free() == n_free);
  CHECK(m.blocks.cursor(0) == 150);
}

TEST_CASE("engine/kv_blocks: a removal beyond the cursor or without free blocks is refused") {
  KvBlocks blocks(128, 2);
  REQUIRE(blocks.prepare(0, 100).ok());
  blocks.advance(0, 100);
  REQUIRE(blocks.share_prefix(0, 1, 64).ok());
  CHECK_FALSE(blocks.plan_removal(0, 0, 101).ok());
  CHECK_FALSE(blocks.plan_removal(0, 101, 0).ok());
  CHECK_FALSE(blocks.plan_removal(0, 100, UINT32_MAX).ok());
  CHECK_FALSE(blocks.plan_removal(2, 0, 0).ok());
  const auto full = blocks.plan_removal(0, 10, 5);  // its first block is shared and both are in use
  REQUIRE_FALSE(full.ok());
  CHECK(full.error().code == ErrorCode::kOutOfMemory);
  CHECK(blocks.plan_removal(0, 64, 5).ok());  // its own block
  CHECK(blocks.plan_removal(0, 100, 0).ok());
}
