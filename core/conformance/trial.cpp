#include "conformance/trial.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/checked_math.hpp"
#include "conformance/verdict.hpp"
#include "engine/memory/lifetime_plan.hpp"

namespace minfer::conformance {
namespace {

constexpr uint64_t kGuardBytes = 256;
constexpr std::byte kSpoilt{0xff};  // NaN as f32 and as f16

Status backend_fails(std::string_view call, const Status& status) {
  if (status.ok()) return {};
  return internal_error("{}: {}", call, status.error().text);
}

std::vector<std::byte> poison(uint64_t size_bytes) {
  std::vector<std::byte> out(size_bytes);
  for (uint64_t at = 0; at + 4 <= size_bytes; at += 4) std::memcpy(&out[at], &kPoison, 4);
  return out;
}

uint64_t next_uid() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Result<std::vector<std::byte>> read_all(const Buffer& buffer) {
  std::vector<std::byte> out(buffer.size_bytes());
  MINFER_TRY(backend_fails("buffer_read", buffer.read(0, out.data(), out.size())));
  return out;
}

Result<DeviceKv> make_kv(Device& device, const KvLayout& layout) {
  DeviceKv kv;
  kv.layout = layout;
  auto bytes = device.kv_region_bytes(layout);
  MINFER_TRY(backend_fails("kv_region_bytes", bytes.status()));
  for (auto [buffer, size] : {std::pair{&kv.k, bytes->k}, std::pair{&kv.v, bytes->v}}) {
    auto made = device.alloc(size);
    MINFER_TRY(backend_fails("buffer_alloc", made.status()));
    *buffer = std::move(*made);
    const std::vector<std::byte> garbage(size, kSpoilt);
    MINFER_TRY(backend_fails("buffer_write", (*buffer)->write(0, garbage.data(), size)));
  }
  return kv;
}

Trial::~Trial() { (void)device_.sync(); }  // work may be under way after a failure

SplitView Trial::view() const {
  SplitView view;
  view.graph = &problem_.graph();
  view.nodes = problem_.nodes();
  view.kv = kv_layers_;
  view.n_ctx = problem_.n_ctx;
  return view;
}

Result<bool> Trial::supported() {
  if (problem_.error()) return internal_error("the case itself is wrong: {}", problem_.error()->text);
  kv_layers_.clear();
  for (const auto& [layer, layout] : problem_.kv_layouts()) kv_layers_.push_back({layer, layout, nullptr, nullptr});
  auto mask = device_.supports(view());
  MINFER_TRY(backend_fails("supports", mask.status()));
  return std::all_of(mask->begin(), mask->end(), [](bool yes) { return yes; });
}

Status Trial::prepare() {
  MINFER_ASSIGN(const bool all, supported());
  if (!all) return unsupported("not supported");

  std::vector<WeightSource> sources;
  for (const Tensor& tensor : problem_.tensors()) {
    weight_bytes_.push_back(tensor.bytes);
    weight_infos_.push_back({text("weight.{}", weight_infos_.size()), static_cast<DType>(tensor.dtype), tensor.shape, tensor.roles, 0});
  }
  for (uint32_t id = 0; id < weight_infos_.size(); ++id) sources.push_back({id, &weight_infos_[id], weight_bytes_[id]});
  times_done_.assign(sources.size() + 1, 0);
  if (!sources.empty()) {
    auto weights = device_.import_weights(sources, [this](uint32_t id) {
      ++times_done_[std::min<size_t>(id, weight_bytes_.size())];
      if (id < weight_bytes_.size()) std::fill(weight_bytes_[id].begin(), weight_bytes_[id].end(), kSpoilt);
    });
    MINFER_TRY(backend_fails("weights_import", weights.status()));
    weights_ = std::move(*weights);
  }
  MINFER_TRY(check_sources_done());

  uid_ = next_uid();
  for (KvLayer& layer : kv_layers_) layer = kvs_->at(layer.layer).layer(layer.layer);
  return plan();
}

Status Trial::move() { return plan(); }

// Each value of its own memory stands between two guard bands, its last byte directly before the second. Returns the end.
uint64_t Trial::place_apart(uint64_t begin) {
  const Graph& graph = problem_.graph();
  uint64_t end = begin;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (graph.values[id].kind != ValueKind::kActivation) continue;
    if (const auto other = problem_.placed_over(id)) {
      places_[id].offset_bytes = places_[*other].offset_bytes;
      continue;
    }
    places_[id].offset_bytes = align_up(end + kGuardBytes, kScratchAlignment) + problem_.shift_of(id) * 4;
    end = places_[id].offset_bytes + graph.values[id].bytes();
  }
  return end;
}

uint64_t Trial::place_packed(uint64_t begin) {
  Graph graph = problem_.graph();
  Split split{0, problem_.nodes(), {}};
  for (const auto& [id, data] : problem_.sources()) split.copies.push_back({id, 1});
  for (ValueId id = 0; id < graph.values.size(); ++id)
    if (kept_[id]) graph.outputs.push_back(id);
  const LifetimePlan plan = plan_lifetimes(graph, {split}, 2, false);
  for (ValueId id = 0; id < graph.values.size(); ++id)
    if (plan.offset_bytes[0][id] != kNoPlace) places_[id].offset_bytes = begin + kGuardBytes + plan.offset_bytes[0][id];
  return begin + kGuardBytes + plan.arena_bytes[0];
}

Status Trial::plan() {
  const Graph& graph = problem_.graph();
  ++generation_;
  places_.assign(graph.values.size(), {});
  kept_.assign(graph.values.size(), 0);
  for (ValueId id = 0; id < graph.values.size(); ++id) kept_[id] = problem_.is_kept(id);
  const uint64_t begin = generation_ % 2 ? 0 : 4096;  // where a moved plan lies otherwise
  const uint64_t end = problem_.packed ? place_packed(begin) : place_apart(begin);
  auto memory = device_.alloc(end + kGuardBytes);
  MINFER_TRY(backend_fails("buffer_alloc", memory.status()));
  std::unique_ptr<Buffer> old_memory = std::exchange(memory_, std::move(*memory));
  for (ValueId id = 0; id < graph.values.size(); ++id)
    if (graph.values[id].kind == ValueKind::kActivation) places_[id].buffer = memory_.get();

  SplitView split = view();
  split.places = places_;
  split.kept = kept_;
  split.uid = uid_;
  split.generation = generation_;
  auto plan = device_.create_plan(split, weights_.get());
  MINFER_TRY(backend_fails("plan_create", plan.status()));
  MINFER_TRY(backend_fails("sync", device_.sync()));  // before the old plan and its memory go
  plan_ = std::move(*plan);
  return {};
}

Status Trial::run(Status* run_status, const StopCheck* should_stop) {
  std::vector<std::byte> image = poison(memory_->size_bytes());
  for (const auto& [id, data] : problem_.sources()) std::memcpy(&image[places_[id].offset_bytes], data.data(), data.size() * 4);
  MINFER_TRY(backend_fails("buffer_write", memory_->write(0, image.data(), image.size())));

  StepInputs inputs;
  for (const ValueId id : problem_.graph().inputs) {
    const uint32_t kind = problem_.graph().values[id].index;
    inputs[kind] = std::as_bytes(std::span(problem_.input_data(kind)));
  }
  Status status = plan_->run(inputs, should_stop);
  const Status late = device_.sync();
  if (status.ok()) status = late;
  if (run_status)
    *run_status = status;
  else
    MINFER_TRY(backend_fails("plan_run", status));
  MINFER_ASSIGN(result_, read_all(*memory_));
  MINFER_TRY(check_sources_done());
  return check_untouched(image);
}

Status Trial::check_sources_done() const {
  if (times_done_.back() > 0) return internal_error("source_done was called for an unknown weight");
  if (std::any_of(times_done_.begin(), times_done_.end(), [](int times) { return times > 1; }))
    return internal_error("source_done was called twice for a weight");
  return {};
}

std::span<const float> Trial::output(ValueId value) const {
  return {reinterpret_cast<const float*>(&result_[places_[value].offset_bytes]), problem_.graph().values[value].shape.elements()};
}

Status Trial::check_untouched(const std::vector<std::byte>& before) const {
  const Graph& graph = problem_.graph();
  std::vector<uint8_t> may_change(before.size(), 0);
  for (const NodeId n : problem_.nodes())
    for (const ValueId id : graph.nodes[n].outputs)
      std::fill_n(may_change.begin() + static_cast<ptrdiff_t>(places_[id].offset_bytes), graph.values[id].bytes(), uint8_t{1});
  for (uint64_t at = 0; at < before.size(); ++at) {
    if (may_change[at] || before[at] == result_[at]) continue;
    if (problem_.packed && at >= kGuardBytes && at + kGuardBytes < before.size()) continue;  // slack between values, sources that died
    for (const auto& [id, data] : problem_.sources()) {
      const uint64_t begin = places_[id].offset_bytes;
      if (at >= begin && at < begin + data.size() * 4)
        return invalid("input value {} was modified at element {} (row {})", id, (at - begin) / 4,
                       (at - begin) / 4 / graph.values[id].shape.dims[0]);
    }
    for (const NodeId n : problem_.nodes())
      for (const ValueId id : graph.nodes[n].outputs) {
        const uint64_t begin = places_[id].offset_bytes, end = begin + graph.values[id].bytes();
        if (at >= end && at < end + kGuardBytes) return invalid("the guard band was written {} bytes behind the output", at - end);
        if (at < begin && at + kGuardBytes >= begin) return invalid("the guard band was written {} bytes before the output", begin - at);
      }
    return invalid("memory at byte {} that belongs to no value was written", at);
  }
  return {};
}

}  // namespace minfer::conformance
