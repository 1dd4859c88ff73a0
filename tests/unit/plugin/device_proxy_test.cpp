// A backend written with the SDK, driven through the engine's Device: what goes in on one side comes out on the other.
#include "plugin/device_proxy.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "engine/graph/graph_builder.hpp"
#include "minfer/plugin/backend.hpp"

using namespace minfer;
using namespace minfer::plugin;
using Catch::Matchers::Contains;

namespace {

// What the backend below saw, for the tests to look at.
struct Seen {
  int live = 0;  // objects made by the plugin and not freed
  std::vector<uint32_t> ops;
  std::vector<std::string> weights;
  mi_op_attrs attrs{};
  mi_kv_layer kv{};
  uint64_t offset_bytes = 0;
  uint64_t uid = 0;
  std::vector<uint32_t> input_bytes;
  std::vector<uint32_t> copies;
  std::vector<uint32_t> rows;  // of kv_rotate, kv_export, kv_import
  std::vector<int> imported;
  std::vector<int32_t> rotation;  // delta, id of the factors, weights given, head_dim
} seen;

struct Counted {
  Counted() { ++seen.live; }
  ~Counted() { --seen.live; }
};

class TestBuffer final : public sdk::Buffer, Counted {
 public:
  explicit TestBuffer(uint64_t n) : bytes(n) {}
  void* host_ptr() noexcept override { return bytes.data(); }
  void write(uint64_t offset, const void* src, uint64_t n) override { std::memcpy(bytes.data() + offset, src, n); }
  void read(uint64_t offset, void* dst, uint64_t n) override { std::memcpy(dst, bytes.data() + offset, n); }
  std::vector<char> bytes;
};

class TestWeights final : public sdk::Weights, Counted {
 public:
  explicit TestWeights(sdk::SourceDone done) : source_done(done) {}
  sdk::SourceDone source_done;  // of an id beyond those of the list: said in a run
  uint64_t own_bytes() const noexcept override { return 42; }
};

// Runs nothing but a doubling of the first activation with a place.
class TestPlan final : public sdk::Plan, Counted {
 public:
  TestPlan(float* x, uint64_t n, const TestWeights* weights) : x_(x), n_(n), weights_(weights) {}
  void run(const sdk::Step& step) override {
    if (step.should_stop()) sdk::fail(MI_CANCELLED, "stopped");
    for (uint32_t kind = 0; kind < MI_INPUT_COUNT + 1; ++kind)
      seen.input_bytes.push_back(static_cast<uint32_t>(step.input(kind).size_bytes));
    for (uint64_t i = 0; i < n_; ++i) x_[i] *= 2;
    if (weights_) weights_->source_done(77);
  }

 private:
  float* x_;
  uint64_t n_;
  const TestWeights* weights_;
};

class TestDevice final : public sdk::Device, Counted {
 public:
  sdk::DeviceInfo info() override { return {"test", "for tests", MI_DEVICE_HOST, 100, 50}; }
  void supports(const sdk::GraphView& graph, uint8_t* mask) override {
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) {
      seen.ops.push_back(graph.node(i).op);
      mask[i] = graph.node(i).op == MI_OP_ROPE;
    }
  }
  std::unique_ptr<sdk::Weights> import_weights(const sdk::WeightList& list) override {
    for (uint32_t i = 0; i < list.size(); ++i) {
      seen.weights.push_back(sdk::join(list[i].id, ' ', sdk::from_abi(list[i].name), ' ', list[i].dims[0], ' ', list[i].size_bytes));
      list.source_done(list[i].id);
    }
    return std::make_unique<TestWeights>(list.source_done());
  }
  std::unique_ptr<sdk::Buffer> alloc(uint64_t n) override {
    if (n > 1000) throw std::bad_alloc();
    return std::make_unique<TestBuffer>(n);
  }
  sdk::KvBytes kv_region_bytes(const mi_kv_layout& layout) override {
    return {uint64_t{layout.n_head_kv} * layout.head_dim * layout.n_blocks, layout.format};
  }
  void kv_copy_rows(const mi_kv_layout&, sdk::Buffer&, sdk::Buffer&, const mi_kv_copy* copies, uint32_t n) override {
    for (uint32_t i = 0; i < n; ++i)
      seen.copies = {copies[i].src_block, copies[i].src_row, copies[i].dst_block, copies[i].dst_row, copies[i].n_rows};
  }
  void kv_export(const mi_kv_layout& layout, sdk::Buffer&, sdk::Buffer&, const mi_kv_rows* rows, uint32_t n, void* k_rows,
                 void* v_rows) override {
    for (uint32_t i = 0; i < n; ++i) seen.rows = {rows[i].block, rows[i].first_row, rows[i].n_rows};
    std::memset(k_rows, static_cast<int>(layout.head_dim), 2);
    std::memset(v_rows, static_cast<int>(layout.n_head_kv), 3);
  }
  void kv_import(const mi_kv_layout& layout, sdk::Buffer&, sdk::Buffer&, const mi_kv_rows* rows, uint32_t n, const void* k_rows,
                 const void* v_rows) override {
    if (layout.n_blocks == 0) sdk::fail(MI_INVALID_ARGUMENT, "no blocks");
    for (uint32_t i = 0; i < n; ++i) seen.rows = {rows[i].block, rows[i].first_row, rows[i].n_rows};
    seen.imported = {static_cast<const char*>(k_rows)[0], static_cast<const char*>(v_rows)[0]};
  }
  void kv_rotate(const mi_kv_layout& layout, sdk::Buffer&, const mi_kv_rotation& rotation, sdk::Weights* weights, const mi_kv_rows* rows,
                 uint32_t n) override {
    if (rotation.check_only) sdk::fail(MI_INVALID_ARGUMENT, "only a check");
    seen.attrs = *rotation.rope;
    seen.rotation = {rotation.delta, static_cast<int32_t>(rotation.freq_factors), weights != nullptr,
                     static_cast<int32_t>(layout.head_dim)};
    for (uint32_t i = 0; i < n; ++i) seen.rows = {rows[i].block, rows[i].first_row, rows[i].n_rows};
  }
  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView& graph, sdk::Weights* weights) override {
    if (!weights) sdk::fail(MI_INVALID_ARGUMENT, "no weights");
    seen.uid = graph.uid();
    for (uint32_t i = 0; i < graph.n_nodes(); ++i)
      if (graph.node(i).op == MI_OP_ROPE) seen.attrs = *graph.node(i).attrs;
    seen.kv = *graph.kv_layer(3);
    for (uint32_t id = 0; id < graph.n_values(); ++id) {
      const mi_value& value = graph.value(id);
      if (!value.buffer) continue;
      seen.offset_bytes = value.offset_bytes;
      auto* bytes = static_cast<char*>(sdk::Buffer::from(value.buffer)->host_ptr());
      return std::make_unique<TestPlan>(reinterpret_cast<float*>(bytes + value.offset_bytes), value.size_bytes / 4,
                                        static_cast<TestWeights*>(weights));
    }
    sdk::fail(MI_INVALID_ARGUMENT, "no value has a place");
  }
  void sync() override { throw 7; }
};

class TestBackend final : public sdk::Backend, Counted {
 public:
  uint32_t device_count() override { return 1; }
  std::unique_ptr<sdk::Device> open_device(uint32_t) override { return std::make_unique<TestDevice>(); }
};

const mi_plugin_desc kDesc = {sizeof(mi_plugin_desc), 1, 0, 0, MI_PLUGIN_BACKEND, 0, "test", "1.0", "", "", nullptr, [](void* self) {
                                delete static_cast<sdk::Backend*>(self);
                              }};

std::vector<std::unique_ptr<Device>> open_test_devices() {
  seen = {};
  auto plugin = std::make_shared<OpenPlugin>(&kDesc, std::make_unique<HostApi>(Options{}, LogSink{}),
                                             static_cast<sdk::Backend*>(new TestBackend), &sdk::backend_thunks::kTable);
  auto devices = open_devices(plugin);
  REQUIRE(devices.ok());
  return std::move(*devices);
}

const std::vector<WeightInfo> kWeights = {{"embd", DType::kF16, Shape{8, 5}, kRoleEmbedding, kEmbeddingLayer, {}}};

// embedding -> rope -> kv_store in layer 3
Graph small_graph() {
  GraphBuilder b(make_graph_params(2, 2, {}), kWeights);
  const ValueId ids = *b.input(InputKind::kTokenIds), positions = *b.input(InputKind::kPositions);
  const ValueId row_seq = *b.input(InputKind::kRowSeq), table = *b.input(InputKind::kBlockTable);
  const ValueId w = *b.weight(0);
  const ValueId x = (*b.add_node(Op::kGetRows, kEmbeddingLayer, std::array{w, ids}, {}))[0];
  OpAttrs attrs;
  attrs.n_head = attrs.n_head_kv = 2;
  attrs.head_dim = 4;
  attrs.rope_kind = RopeKind::kInterleaved;
  attrs.rope_freq_base = 5000;
  attrs.rope_freq_scale = 0.5f;
  const ValueId q = (*b.add_node(Op::kRope, 3, std::array{x, positions}, attrs))[0];
  REQUIRE(b.add_node(Op::kKvStore, 3, std::array{q, q, positions, row_seq, table}, attrs).ok());
  REQUIRE(b.output(q).ok());
  return *b.finish();
}

}  // namespace

TEST_CASE("plugin/device_proxy: describes the device and frees everything in reverse") {
  {
    const auto devices = open_test_devices();
    const DeviceInfo& info = devices[0]->info();
    CHECK(info.name == "test");
    CHECK(info.description == "for tests");
    CHECK(info.host);
    CHECK(info.memory_total_bytes == 100);
    CHECK(info.memory_free_bytes == 50);
    const auto buffer = devices[0]->alloc(16);
    REQUIRE(buffer.ok());
    CHECK(seen.live == 3);  // backend, device, buffer
  }
  CHECK(seen.live == 0);
}

TEST_CASE("plugin/device_proxy: passes a graph to supports and its answer back") {
  const auto devices = open_test_devices();
  const Graph graph = small_graph();
  const NodeId nodes[] = {0, 1, 2};
  SplitView view;
  view.graph = &graph;
  view.nodes = nodes;
  const auto mask = devices[0]->supports(view);
  REQUIRE(mask.ok());
  CHECK(seen.ops == std::vector<uint32_t>{MI_OP_GET_ROWS, MI_OP_ROPE, MI_OP_KV_STORE});
  CHECK(*mask == std::vector<bool>{false, true, false});
}

TEST_CASE("plugin/device_proxy: binds places and KV in a plan and hands over the inputs of a run") {
  const auto devices = open_test_devices();
  Device& device = *devices[0];
  const Graph graph = small_graph();
  auto buffer = *device.alloc(256);
  auto k = *device.alloc(64), v = *device.alloc(64);
  auto* x = reinterpret_cast<float*>(static_cast<char*>(buffer->host_ptr()) + 64);
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(i);

  uint32_t done_in_import = 0;  // 1 + the id
  const std::vector<std::byte> data(80);
  const WeightSource source{0, &kWeights[0], data};
  uint32_t done_in_run = 0;  // the function handed over is gone when the run calls it
  auto weights = device.import_weights({&source, 1}, [&](uint32_t id) { (id == 0 ? done_in_import : done_in_run) = id + 1; });
  REQUIRE(weights.ok());
  CHECK(seen.weights == std::vector<std::string>{"0 embd 8 80"});
  CHECK(done_in_import == 1);
  CHECK((*weights)->own_bytes() == 42);

  std::vector<SplitView::Place> places(graph.values.size());
  places[graph.nodes[1].outputs[0]] = {buffer.get(), 64};
  const KvLayer kv[] = {{3, {KvFormat::kF16, 2, 4, 64}, k.get(), v.get()}};
  const NodeId nodes[] = {1, 2};
  SplitView view;
  view.graph = &graph;
  view.nodes = nodes;
  view.places = places;
  view.kv = kv;
  view.uid = 17;
  auto plan = device.create_plan(view, weights->get());
  REQUIRE(plan.ok());
  CHECK(seen.uid == 17);
  CHECK(seen.offset_bytes == 64);
  CHECK(seen.attrs.rope_kind == MI_ROPE_INTERLEAVED);
  CHECK(seen.attrs.rope_freq_base == 5000);
  CHECK(seen.attrs.rope_freq_scale == 0.5f);
  CHECK(seen.attrs.head_dim == 4);
  CHECK(seen.kv.layout.format == MI_TYPE_F16);
  CHECK(seen.kv.layout.n_blocks == 64);
  CHECK(seen.kv.k != seen.kv.v);

  const std::vector<std::byte> positions(8);
  StepInputs inputs;
  inputs[static_cast<size_t>(InputKind::kPositions)] = positions;
  CHECK(done_in_run == 0);
  REQUIRE((*plan)->run(inputs, nullptr).ok());
  CHECK(done_in_run == 78);
  CHECK(x[15] == 30);
  CHECK(seen.input_bytes == std::vector<uint32_t>{0, 8, 0, 0, 0, 0, 0, 0});

  const StopCheck stop = [] { return true; };
  const Status stopped = (*plan)->run(inputs, &stop);
  REQUIRE_FALSE(stopped.ok());
  CHECK(stopped.error().code == ErrorCode::kCancelled);
  CHECK(x[15] == 30);
}

TEST_CASE("plugin/device_proxy: turns failures into errors that name the device") {
  const auto devices = open_test_devices();
  const auto big = devices[0]->alloc(2000);
  REQUIRE_FALSE(big.ok());
  CHECK(big.error().code == ErrorCode::kOutOfMemory);
  CHECK_THAT(big.error().text, Contains("device test: out of memory"));
  const Status thrown = devices[0]->sync();
  REQUIRE_FALSE(thrown.ok());
  CHECK(thrown.error().code == ErrorCode::kInternal);
  CHECK_THAT(thrown.error().text, Contains("unknown type"));

  auto buffer = *devices[0]->alloc(16);
  char bytes[16] = {};
  CHECK(buffer->write(8, bytes, 8).ok());
  CHECK_FALSE(buffer->write(8, bytes, 9).ok());
  CHECK_FALSE(buffer->read(UINT64_MAX, bytes, 2).ok());
}

TEST_CASE("plugin/device_proxy: passes KV layouts and row copies") {
  const auto devices = open_test_devices();
  const KvLayout layout{KvFormat::kQ8_0, 2, 64, 3};
  const auto bytes = devices[0]->kv_region_bytes(layout);
  REQUIRE(bytes.ok());
  CHECK(bytes->k == 384);
  CHECK(bytes->v == MI_TYPE_Q8_0);
  auto k = *devices[0]->alloc(8), v = *devices[0]->alloc(8);
  const KvRowCopy copy{1, 2, 3, 4, 5};
  REQUIRE(devices[0]->kv_copy_rows({0, layout, k.get(), v.get()}, {&copy, 1}).ok());
  CHECK(seen.copies == std::vector<uint32_t>{1, 2, 3, 4, 5});
}

TEST_CASE("plugin/device_proxy: passes KV rows out and in") {
  const auto devices = open_test_devices();
  KvLayout layout{KvFormat::kF16, 2, 64, 3};
  auto k = *devices[0]->alloc(8), v = *devices[0]->alloc(8);
  const KvRows rows{2, 5, 6};
  std::byte k_rows[4] = {}, v_rows[4] = {};
  REQUIRE(devices[0]->kv_export({0, layout, k.get(), v.get()}, {&rows, 1}, k_rows, v_rows).ok());
  CHECK(seen.rows == std::vector<uint32_t>{2, 5, 6});
  CHECK(k_rows[1] == std::byte{64});
  CHECK(k_rows[2] == std::byte{0});
  CHECK(v_rows[2] == std::byte{2});
  k_rows[0] = std::byte{11};
  v_rows[0] = std::byte{12};
  REQUIRE(devices[0]->kv_import({0, layout, k.get(), v.get()}, {&rows, 1}, k_rows, v_rows).ok());
  CHECK(seen.imported == std::vector<int>{11, 12});
  layout.n_blocks = 0;
  const Status refused = devices[0]->kv_import({0, layout, k.get(), v.get()}, {&rows, 1}, k_rows, v_rows);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().text.find("no blocks") != std::string::npos);
}

TEST_CASE("plugin/device_proxy: passes rotations of stored keys") {
  const auto devices = open_test_devices();
  const KvLayout layout{KvFormat::kF16, 2, 64, 3};
  auto k = *devices[0]->alloc(8), v = *devices[0]->alloc(8);
  KvRotation rotation;
  rotation.rope.n_head = 2;
  rotation.rope.head_dim = 64;
  rotation.rope.rope_freq_base = 500;
  rotation.freq_factors = 9;
  rotation.delta = -70;
  const std::vector<std::byte> bytes(80);
  const WeightSource source{0, &kWeights[0], bytes};
  auto weights = devices[0]->import_weights({&source, 1}, [](uint32_t) {});
  REQUIRE(weights.ok());
  const KvRows rows{4, 5, 6};
  REQUIRE(devices[0]->kv_rotate({0, layout, k.get(), v.get()}, rotation, weights->get(), {&rows, 1}, false).ok());
  CHECK(seen.rotation == std::vector<int32_t>{-70, 9, 1, 64});
  CHECK(seen.rows == std::vector<uint32_t>{4, 5, 6});
  CHECK(seen.attrs.rope_freq_base == 500);
  const Status checked = devices[0]->kv_rotate({0, layout, k.get(), v.get()}, rotation, nullptr, {&rows, 1}, true);
  REQUIRE_FALSE(checked.ok());
  CHECK_THAT(checked.error().text, Contains("only a check"));
}
