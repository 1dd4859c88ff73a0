// The golden layout of the ABI, and what a newer or older partner may do to it: longer structs, longer strides, shorter structs.
#include <catch2/catch.hpp>
#include <cstring>
#include <regex>
#include <set>

#include "minfer/abi/abi_hash.h"
#include "minfer/abi/plugin.h"
#include "minfer/plugin/host_device.hpp"
#include "support/support.hpp"

using namespace minfer;

namespace {

struct Row {
  std::string structure, field;  // field is empty at the struct itself
  size_t golden_offset, golden_size, offset, size;
};

const std::vector<Row> kRows = {
#define STRUCT(s, size) {#s, "", 0, size, 0, sizeof(s)},
#define FIELD(s, f, offset, size) {#s, #f, offset, size, offsetof(s, f), sizeof(((s*)nullptr)->f)},
#include "layout_64bit.inc"
};

// A backend that says what it saw.
class SeenDevice final : public sdk::HostDevice {
 public:
  explicit SeenDevice(const sdk::Host&) : HostDevice("seen", "for tests of the ABI") {}
  void supports(const sdk::GraphView& graph, uint8_t* mask) override {
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) {
      const mi_value* source = graph.input(graph.node(i), 0);
      mask[i] = static_cast<uint8_t>(graph.node(i).op + source->dims[0]);
    }
    layer_blocks = graph.kv_layer(7) ? graph.kv_layer(7)->layout.n_blocks : 0;
  }
  std::unique_ptr<sdk::Weights> import_weights(const sdk::WeightList& list) override {
    for (uint32_t i = 0; i < list.size(); ++i) weight_ids.push_back(list[i].id);
    return HostDevice::import_weights(list);
  }
  sdk::KvBytes kv_region_bytes(const mi_kv_layout&) override { return {}; }
  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView&, sdk::Weights*) override { sdk::fail(MI_UNSUPPORTED, "no plans"); }

  uint32_t layer_blocks = 0;
  std::vector<uint32_t> weight_ids;
};

// A struct of a newer partner: the one of this header with fields behind it.
template <class T>
struct Newer {
  T known{};
  uint64_t appended[3] = {~0ull, ~0ull, ~0ull};
  Newer() { known.struct_size = sizeof(Newer); }
};

const mi_host_v1 kHost = {sizeof(mi_host_v1), MI_ABI_MINOR, nullptr, [](void*, uint32_t, mi_string) {},
                          [](void*, mi_string, mi_string*) -> int32_t { return MI_NOT_FOUND; }};

}  // namespace

TEST_CASE("abi/layout: no field moved and no size changed") {
  for (const Row& row : kRows) {
    INFO(row.structure << "." << row.field);
    CHECK(row.offset == row.golden_offset);
    CHECK(row.size == row.golden_size);
  }
}

TEST_CASE("abi/layout: structs have no gaps and the table names every field") {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (!kRows[i].field.empty()) continue;
    size_t end = 0;
    for (size_t f = i + 1; f < kRows.size() && !kRows[f].field.empty(); ++f) {
      INFO(kRows[f].structure << "." << kRows[f].field);
      CHECK(kRows[f].offset == end);
      end = kRows[f].offset + kRows[f].size;
    }
    INFO(kRows[i].structure);
    CHECK(end == kRows[i].size);
  }
}

TEST_CASE("abi/layout: the table has every struct of the headers and those that may grow begin with their size") {
  std::set<std::string> listed, defined;
  for (const Row& row : kRows)
    if (row.field.empty()) listed.insert(row.structure);
  const std::regex definition("typedef struct (mi_\\w+) \\{");
  for (const auto& entry : std::filesystem::directory_iterator(MINFER_ABI_HEADERS)) {
    const std::string text = test::read_file(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), definition), end; it != end; ++it) defined.insert((*it)[1]);
  }
  CHECK(listed == defined);
  // Fixed for the whole major, as minfer/abi/base.h says.
  const std::set<std::string> fixed = {"mi_string", "mi_span", "mi_kv_copy", "mi_kv_rows"};
  for (size_t i = 0; i + 1 < kRows.size(); ++i)
    if (kRows[i].field.empty() && !fixed.count(kRows[i].structure)) {
      INFO(kRows[i].structure);
      CHECK(kRows[i + 1].field == "struct_size");
    }
}

TEST_CASE("abi: a field counts only where the maker's size holds it whole") {
  mi_error error{};
  error.struct_size = offsetof(mi_error, text) + sizeof(error.text) - 1;
  CHECK(MI_HAS_FIELD(mi_error, &error, code));
  CHECK_FALSE(MI_HAS_FIELD(mi_error, &error, text));
  error.struct_size = sizeof error;
  CHECK(MI_HAS_FIELD(mi_error, &error, text));
}

TEST_CASE("abi: the hash of the headers is a SHA-256") {
  const std::string hash = MI_ABI_HASH;
  CHECK(hash.size() == 64);
  CHECK(hash.find_first_not_of("0123456789abcdef") == std::string::npos);
}

TEST_CASE("abi/evolution: a plugin reads the longer structs of a newer host by their strides") {
  SeenDevice device{sdk::Host(&kHost)};
  auto* handle = reinterpret_cast<mi_device*>(static_cast<sdk::Device*>(&device));
  const mi_backend_v1& table = sdk::backend_thunks::kTable;

  Newer<mi_value> values[3];
  for (uint64_t i = 0; i < 3; ++i) values[i].known.dims[0] = 100 + i;
  const uint32_t inputs[3] = {2, 0, 1};
  Newer<mi_node> nodes[3];
  Newer<mi_op_attrs> attrs;
  for (uint32_t i = 0; i < 3; ++i) {
    nodes[i].known.op = i + 1;
    nodes[i].known.n_inputs = 1;
    nodes[i].known.inputs = &inputs[i];
    nodes[i].known.attrs = &attrs.known;
  }
  Newer<mi_kv_layer> layers[2];
  layers[0].known.layer = 3;
  layers[1].known.layer = 7;
  layers[1].known.layout.n_blocks = 55;
  Newer<mi_graph_view> view;
  view.known.n_values = 3;
  view.known.n_nodes = 3;
  view.known.n_kv_layers = 2;
  view.known.value_stride = sizeof values[0];
  view.known.node_stride = sizeof nodes[0];
  view.known.kv_layer_stride = sizeof layers[0];
  view.known.values = &values[0].known;
  view.known.nodes = &nodes[0].known;
  view.known.kv_layers = &layers[0].known;
  uint8_t mask[3] = {};
  REQUIRE(table.supports(handle, &view.known, mask, nullptr) == MI_OK);
  CHECK(mask[0] == 1 + 102);
  CHECK(mask[1] == 2 + 100);
  CHECK(mask[2] == 3 + 101);
  CHECK(device.layer_blocks == 55);

  Newer<mi_weight> weights[3];
  for (uint32_t i = 0; i < 3; ++i) weights[i].known.id = i + 40;
  Newer<mi_weight_list> list;
  list.known.n_weights = 3;
  list.known.weight_stride = sizeof weights[0];
  list.known.weights = &weights[0].known;
  mi_weights* imported = nullptr;
  REQUIRE(table.weights_import(handle, &list.known, &imported, nullptr) == MI_OK);
  CHECK(device.weight_ids == std::vector<uint32_t>{40, 41, 42});
  table.weights_free(imported);
}

TEST_CASE("abi/evolution: a plugin writes no more of an error than its caller's struct holds") {
  SeenDevice device{sdk::Host(&kHost)};
  auto* handle = reinterpret_cast<mi_device*>(static_cast<sdk::Device*>(&device));
  mi_graph_view view{};
  view.struct_size = sizeof view;
  mi_error error;
  std::memset(&error, '~', sizeof error);
  error.struct_size = offsetof(mi_error, text) + 4;
  mi_plan* plan = nullptr;
  CHECK(sdk::backend_thunks::kTable.plan_create(handle, &view, nullptr, &plan, &error) == MI_UNSUPPORTED);
  CHECK(error.code == MI_UNSUPPORTED);
  CHECK(std::string(error.text, 5) == std::string("no \0~", 5));
  CHECK(sdk::backend_thunks::kTable.plan_create(handle, &view, nullptr, &plan, nullptr) == MI_UNSUPPORTED);
}
