// What a step costs around the work itself: everything that the engine does for a decode step except the backend's plan, and the making of
// a graph. The model's real graph runs on a device that computes nothing, so all that is timed is ours.
// Build target bench_step; run it with a model: bench_step MODEL [benchmark options].
#include <benchmark/benchmark.h>

#include <cstdio>
#include <vector>

#include "engine/session.hpp"
#include "gguf/model_file.hpp"
#include "plugin/registry.hpp"
#include "runtime/gguf_metadata.hpp"

namespace minfer {
namespace {

template <class T>
T need(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "error: %s\n", result.error().text.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

class IdleBuffer final : public Buffer {
 public:
  explicit IdleBuffer(uint64_t size_bytes) : bytes_(size_bytes) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  void* host_ptr() const override { return const_cast<std::byte*>(bytes_.data()); }
  Status write(uint64_t, const void*, uint64_t) override { return {}; }
  Status read(uint64_t, void*, uint64_t) const override { return {}; }

 private:
  std::vector<std::byte> bytes_;
};

struct IdleWeights final : WeightSet {
  uint64_t own_bytes() const override { return 0; }
};

struct IdlePlan final : Plan {
  Status run(const StepInputs&, const StopCheck*) override { return {}; }
};

class IdleDevice final : public Device {
 public:
  IdleDevice() { info_.name = "idle", info_.host = true; }
  const DeviceInfo& info() const override { return info_; }
  Result<std::vector<bool>> supports(const SplitView& view) override { return std::vector<bool>(view.nodes.size(), true); }
  Result<std::unique_ptr<WeightSet>> import_weights(std::span<const WeightSource>, const std::function<void(uint32_t id)>&) override {
    return std::unique_ptr<WeightSet>(new IdleWeights);
  }
  Result<std::unique_ptr<Buffer>> alloc(uint64_t size_bytes) override { return std::unique_ptr<Buffer>(new IdleBuffer(size_bytes)); }
  Result<KvRegionBytes> kv_region_bytes(const KvLayout&) override { return KvRegionBytes{64, 64}; }
  Status kv_copy_rows(const KvLayer&, std::span<const KvRowCopy>) override { return {}; }
  Status kv_rotate(const KvLayer&, const KvRotation&, WeightSet*, std::span<const KvRows>, bool) override { return {}; }
  Status kv_export(const KvLayer&, std::span<const KvRows>, std::byte*, std::byte*) override { return {}; }
  Status kv_import(const KvLayer&, std::span<const KvRows>, const std::byte*, const std::byte*) override { return {}; }
  Result<std::unique_ptr<Plan>> create_plan(const SplitView&, WeightSet*) override { return std::unique_ptr<Plan>(new IdlePlan); }
  Status sync() override { return {}; }

 private:
  DeviceInfo info_;
};

// The graph of a model file, on the idle device.
struct IdleModel {
  explicit IdleModel(const char* path)
      : file(need(gguf::open_model_file(path))), registry(plugin::discover(plugin::standard_search()), {}) {
    const GgufMetadata metadata(file);
    architecture = need(registry.open_model(metadata));
    cparams.n_ctx = 4096;
    std::vector<Device*> devices{&device};
    std::vector<std::span<const std::byte>> data;
    for (const WeightInfo& weight : architecture->weights()) {
      const gguf::Tensor* tensor = file.tensors().find(weight.name);
      data.push_back(tensor ? tensor->bytes : std::as_bytes(std::span(weight.values)));
    }
    Placement placement = need(place_model(*architecture, devices, {std::nullopt}, {false}, cparams));
    model = need(LoadedModel::load(*architecture, devices, std::move(placement), data, [](uint32_t) {}));
  }

  gguf::ModelFile file;
  plugin::Registry registry;
  IdleDevice device;
  CParams cparams;
  std::unique_ptr<ModelArchitecture> architecture;
  std::unique_ptr<LoadedModel> model;
};

void forward(Session& session, std::span<const int32_t> tokens) {
  if (session.cursor(0) + tokens.size() > session.cparams().n_ctx && !session.rollback(0, 0).ok()) std::abort();
  const SeqChunk chunk{0, tokens, 1};
  benchmark::DoNotOptimize(need(session.forward({&chunk, 1})));
}

// < 20 us is what a step may cost.
void decode_step(benchmark::State& state, const IdleModel& idle) {
  const auto session = need(Session::create(*idle.model, idle.cparams));
  const int32_t token = 1;
  forward(*session, {&token, 1});
  for (auto _ : state) forward(*session, {&token, 1});
  if (session->stats().builds != 1) state.SkipWithError("the graph was not reused");
}

// < 2 ms. A cache of one graph, and two steps in turn that need different ones.
void rebuild(benchmark::State& state, const IdleModel& idle) {
  const auto session = need(Session::create(*idle.model, idle.cparams, 1));
  const int32_t tokens[2] = {1, 2};
  size_t n = 1;
  for (auto _ : state) forward(*session, {tokens, n = 3 - n});
  if (session->stats().reuses != 0) state.SkipWithError("a graph was reused");
}

}  // namespace
}  // namespace minfer

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_step MODEL [benchmark options]\n");
    return 2;
  }
  const minfer::IdleModel idle(argv[1]);
  argv[1] = argv[0];
  int n_options = argc - 1;
  benchmark::Initialize(&n_options, argv + 1);
  benchmark::RegisterBenchmark("decode_step", [&](benchmark::State& state) {
    minfer::decode_step(state, idle);
  })->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("rebuild", [&](benchmark::State& state) { minfer::rebuild(state, idle); })->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
}
