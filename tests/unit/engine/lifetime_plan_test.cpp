// Scratch memory: each claim of the lifetime plan, and random graphs run symbolically over it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>

#include "engine/memory/lifetime_plan.hpp"
#include "sketch.hpp"

namespace minfer::test {
namespace {

LifetimePlan plan_on(const Graph& graph, std::vector<uint32_t> node_device = {}, uint32_t n_devices = 1, bool observe = false) {
  if (node_device.empty()) node_device.assign(graph.nodes.size(), 0);
  return plan_lifetimes(graph, split_graph(graph, node_device, observe), n_devices, observe);
}

// Runs a graph without numbers: every 4-byte cell of scratch remembers which element of which root value it holds. Fails where a node
// would read a cell that holds something else, or where an output overlaps an input that it may not overwrite.
std::string run_symbolically(const Graph& graph, const std::vector<uint32_t>& node_device, const LifetimePlan& plan, bool observe) {
  using Cell = std::pair<ValueId, uint64_t>;
  std::vector<std::map<uint64_t, Cell>> memory(plan.arena_bytes.size());
  const auto offset = [&](uint32_t device, ValueId id) { return plan.offset_bytes[device][id]; };
  const auto write = [&](uint32_t device, ValueId id) -> std::string {
    const uint64_t at = offset(device, id);
    if (at == kNoPlace) return text("value {} has no place on device {}", id, device);
    if (at % kScratchAlignment || at + graph.values[id].bytes() > plan.arena_bytes[device]) return text("value {} lies outside", id);
    for (uint64_t i = 0; i < graph.values[id].bytes() / 4; ++i) memory[device][at + 4 * i] = {id, i};
    return {};
  };
  const auto read = [&](uint32_t device, ValueId id) -> std::string {
    uint64_t shift = 0;
    const ValueId root = graph.alias_root(id, &shift);
    const uint64_t at = offset(device, id);
    if (at == kNoPlace) return text("value {} has no place on device {}", id, device);
    for (uint64_t i = 0; i < graph.values[id].bytes() / 4; ++i) {
      const auto cell = memory[device].find(at + 4 * i);
      if (cell == memory[device].end() || cell->second != Cell{root, shift / 4 + i})
        return text("value {} is gone on device {}", id, device);
    }
    return {};
  };
  for (const Split& split : split_graph(graph, node_device, observe)) {
    for (const StagedCopy& copy : split.copies) {
      if (std::string error = read(copy.from_device, copy.value); !error.empty()) return "copy: " + error;
      if (std::string error = write(split.device, copy.value); !error.empty()) return "copy: " + error;
    }
    for (NodeId n : split.nodes) {
      const Node& node = graph.nodes[n];
      for (ValueId id : node.inputs) {
        if (id == kNone || graph.values[id].kind != ValueKind::kActivation) continue;
        if (std::string error = read(split.device, id); !error.empty()) return text("node {}: {}", n, error);
      }
      for (ValueId out : node.outputs) {
        const uint64_t at = offset(split.device, out);
        for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
          const ValueId id = node.inputs[slot];
          if (id == kNone || graph.values[id].kind != ValueKind::kActivation) continue;
          const uint64_t other = offset(split.device, id);
          const bool overlaps = at < other + graph.values[id].bytes() && other < at + graph.values[out].bytes();
          const bool allowed = op_info(node.op).in_place_mask >> slot & 1 && at == other;
          if (overlaps && !allowed) return text("node {}: output over input {}", n, slot);
        }
        if (std::string error = write(split.device, out); !error.empty()) return text("node {}: {}", n, error);
      }
    }
  }
  for (ValueId id : graph.outputs)
    if (std::string error = read(node_device[graph.values[graph.alias_root(id)].producer], id); !error.empty()) return "output: " + error;
  return {};
}

TEST_CASE("engine/lifetime_plan: a chain needs the same memory however long it is") {
  const auto arena = [](uint32_t length, bool in_place) {
    Sketch s;
    ValueId x = s.x(16);
    for (uint32_t i = 0; i < length; ++i) x = in_place ? s.g.silu(x) : s.matmul(x, 16, 16);
    s.g.output(x);
    return plan_on(s.finish()).arena_bytes[0];
  };
  constexpr uint64_t kOne = 16 * 4 * 4;  // bytes of one value
  CHECK(arena(0, false) == kOne);
  CHECK(arena(2, false) == 2 * kOne);
  CHECK(arena(40, false) == 2 * kOne);
  CHECK(arena(40, true) == kOne);
}

TEST_CASE("engine/lifetime_plan: parallel chains do not share and every edge counts") {
  Sketch s;
  const ValueId x = s.x(16);
  const ValueId a = s.matmul(x, 16, 16);
  const ValueId b = s.matmul(x, 16, 16);
  const ValueId c = s.matmul(a, 16, 16);  // x is dead by now: its place may serve
  const ValueId sum = s.g.add(b, c);
  const ValueId twice = s.g.add(sum, sum);  // two edges: not in place
  s.g.output(twice);
  const Graph graph = s.finish();
  const LifetimePlan plan = plan_on(graph);
  const auto& at = plan.offset_bytes[0];
  CHECK(at[a] != at[b]);
  CHECK(at[a] != at[x]);
  CHECK(at[b] != at[x]);
  CHECK(at[c] == at[x]);
  CHECK(at[sum] == at[b]);  // over its first input
  CHECK(at[twice] != at[sum]);
  CHECK(plan.n_in_place == 1);
  CHECK(plan.arena_bytes[0] == 3u * 16 * 4 * 4);
  CHECK(run_symbolically(graph, std::vector<uint32_t>(graph.nodes.size(), 0), plan, false).empty());
  CHECK(plan_on(graph) == plan);  // deterministic
}

TEST_CASE("engine/lifetime_plan: a view shares memory at its offset and keeps its root alive") {
  Sketch s;
  const ValueId x = s.x(32);  // [32, 4]
  const ValueId view = s.g.view(x, {8, 4}, 64);
  const ValueId inner = s.g.view(view, {8, 2}, 16);
  ValueId y = s.matmul(x, 32, 32);  // the last direct reader of x
  for (int i = 0; i < 4; ++i) y = s.matmul(y, 32, 32);
  const ValueId last = s.g.silu(inner);  // a window: smaller than the root, so not in place
  s.g.output(y);
  s.g.output(last);
  const Graph graph = s.finish();
  const LifetimePlan plan = plan_on(graph);
  const auto& at = plan.offset_bytes[0];
  CHECK(at[view] == at[x] + 64 * 4);
  CHECK(at[inner] == at[x] + (64 + 16) * 4);
  CHECK(plan.n_in_place == 0);
  CHECK(run_symbolically(graph, std::vector<uint32_t>(graph.nodes.size(), 0), plan, false).empty());

  Sketch whole;
  const ValueId z = whole.g.silu(whole.g.view(whole.x(16), {64}));  // the whole root, read once
  whole.g.output(z);
  CHECK(plan_on(whole.finish()).n_in_place == 1);
}

TEST_CASE("engine/lifetime_plan: outputs live to the end and dead nodes get no memory") {
  Sketch s;
  const ValueId x = s.x(16);
  const ValueId early = s.matmul(x, 16, 16);
  const ValueId over = s.g.silu(early);  // its sole reader, but early is an output
  const ValueId dead = s.matmul(x, 16, 32);
  const ValueId view_of_early = s.g.view(early, {16}, 0);
  ValueId y = over;
  for (int i = 0; i < 3; ++i) y = s.matmul(y, 16, 16);
  s.g.output(view_of_early);
  s.g.output(y);
  const Graph graph = s.finish();
  const LifetimePlan plan = plan_on(graph);
  CHECK(plan.offset_bytes[0][over] != plan.offset_bytes[0][early]);
  CHECK(plan.offset_bytes[0][dead] == kNoPlace);
  CHECK(plan.n_in_place == 0);
  CHECK(run_symbolically(graph, std::vector<uint32_t>(graph.nodes.size(), 0), plan, false).empty());
}

TEST_CASE("engine/lifetime_plan: a value read on two devices has a place on both") {
  Sketch s;
  const ValueId x = s.x(16);              // device 0
  const ValueId a = s.g.silu(x);          // device 1
  const ValueId b = s.matmul(a, 16, 16);  // device 0
  const ValueId c = s.g.add(b, x);        // device 0: x must still be there
  s.g.output(c);
  const Graph graph = s.finish();
  const std::vector<uint32_t> devices = {0, 1, 0, 0};
  const LifetimePlan plan = plan_on(graph, devices, 2);
  CHECK(plan.offset_bytes[0][x] != kNoPlace);
  CHECK(plan.offset_bytes[1][x] != kNoPlace);
  CHECK(plan.offset_bytes[1][c] == kNoPlace);
  CHECK(run_symbolically(graph, devices, plan, false).empty());
}

TEST_CASE("engine/lifetime_plan: observing gives every value memory of its own") {
  Sketch s;
  ValueId x = s.x(16);
  for (int i = 0; i < 5; ++i) x = s.g.silu(s.matmul(x, 16, 16));
  s.g.output(x);
  const Graph graph = s.finish();
  const LifetimePlan plan = plan_on(graph, {}, 1, true);
  std::vector<uint64_t> places;
  for (const Node& node : graph.nodes) places.push_back(plan.offset_bytes[0][node.outputs[0]]);
  std::sort(places.begin(), places.end());
  CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
  CHECK(plan.arena_bytes[0] == 11u * 16 * 4 * 4);
  CHECK(plan.n_in_place == 0);
}

TEST_CASE("engine/lifetime_plan: in random graphs no two live values overlap") {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  uint32_t in_place = 0, copies = 0, shared = 0;
  for (int round = 0; round < 400; ++round) {
    const uint32_t n_devices = 1 + static_cast<uint32_t>(below(3));
    Sketch s;
    struct Made {
      ValueId id;
      uint64_t width, rows;
    };
    std::vector<Made> made;
    const ValueId out_rows = s.g.input(InputKind::kOutRows);
    const uint64_t widths[] = {8, 16, 32};
    made.push_back({s.x(16), 16, 4});
    const size_t n_nodes = 5 + below(25);
    for (size_t i = 0; i < n_nodes; ++i) {
      // Mostly recent values, so that chains form.
      const Made m = made[made.size() - 1 - below(std::min<size_t>(made.size(), below(4) ? 3 : made.size()))];
      switch (below(7)) {
        case 0: {
          const uint64_t w = widths[below(3)];
          made.push_back({s.matmul(m.id, m.width, w), w, m.rows});
          break;
        }
        case 1: made.push_back({s.g.silu(m.id), m.width, m.rows}); break;
        case 2: {
          Made other = m;
          for (const Made& o : made)
            if (o.width == m.width && o.rows == m.rows && below(2)) other = o;
          made.push_back({below(2) ? s.g.add(m.id, other.id) : s.g.mul(other.id, m.id), m.width, m.rows});
          break;
        }
        case 3: made.push_back({s.g.rms_norm(m.id, s.vector(m.width)), m.width, m.rows}); break;
        case 4:
          if (m.rows >= 2) made.push_back({s.g.view(m.id, {m.width, 2}, below(m.rows - 1) * m.width), m.width, 2});
          break;
        case 5: made.push_back({s.g.view(m.id, {m.width, m.rows}), m.width, m.rows}); break;
        case 6: made.push_back({s.g.get_rows(m.id, out_rows), m.width, 2}); break;
      }
    }
    s.g.output(made.back().id);
    if (below(2)) s.g.output(made[below(made.size())].id);
    const Graph graph = s.finish();
    std::vector<uint32_t> devices;
    for (size_t i = 0; i < graph.nodes.size(); ++i) devices.push_back(static_cast<uint32_t>(below(n_devices)));
    for (const bool observe : {false, true}) {
      const LifetimePlan plan = plan_on(graph, devices, n_devices, observe);
      const std::string error = run_symbolically(graph, devices, plan, observe);
      CAPTURE(round, observe, error);
      REQUIRE(error.empty());
      if (observe) continue;
      in_place += plan.n_in_place;
      for (const Split& split : split_graph(graph, devices, false)) copies += static_cast<uint32_t>(split.copies.size());
      const LifetimePlan unshared = plan_on(graph, devices, n_devices, true);
      for (uint32_t d = 0; d < n_devices; ++d) {
        CHECK(plan.arena_bytes[d] <= unshared.arena_bytes[d]);
        shared += plan.arena_bytes[d] < unshared.arena_bytes[d];
      }
    }
  }
  // The graphs did let these happen.
  CHECK(in_place > 200);
  CHECK(copies > 500);
  CHECK(shared > 200);
}

}  // namespace
}  // namespace minfer::test
