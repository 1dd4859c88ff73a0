// Layers on a device whose memory the host cannot touch: the same bits as on the cpu alone, wherever the model is cut.
#include "offload_run.hpp"

using namespace minfer;
using namespace minfer::test;

TEST_CASE("remote: a device that is opened hides its memory and gives back what was written") {
  const ModelOnBackends model(tiny_file(), {backend("remote", 1), cpu()});
  REQUIRE(model->engine().devices().size() == 2);
  Device& device = *model->engine().devices()[0];
  CHECK(device.info().name == "remote:0");
  CHECK_FALSE(device.info().host);
  auto buffer = device.alloc(10000);
  REQUIRE(buffer.ok());
  CHECK((*buffer)->host_ptr() == nullptr);
  std::vector<uint32_t> words(2500);
  REQUIRE((*buffer)->read(0, words.data(), 10000).ok());
  CHECK(std::all_of(words.begin(), words.end(), [](uint32_t w) { return (w & 0x7fc00000) == 0x7f800000 && (w & 0x3fffff) != 0; }));  // sNaN
  const uint32_t written[2] = {1, 2};
  REQUIRE((*buffer)->write(4000, written, 8).ok());
  REQUIRE((*buffer)->read(0, words.data(), 10000).ok());
  CHECK(words[1000] == 1);
  CHECK(words[1001] == 2);
  CHECK(words[999] == words[1002]);
  CHECK_FALSE((*buffer)->write(9997, written, 8).ok());
  CHECK_FALSE((*buffer)->read(10001, words.data(), 0).ok());
}

TEST_CASE("remote/offload: tiny models with none or one or all layers on the device give the cpu's logits") {
  for (const std::string& file : tiny_files()) {
    const ModelOnCpu alone(data_dir() / "tiny" / file);
    const std::vector<int32_t> ids = tokens(alone, 73);
    const std::vector<float> expected = prompt_and_decode(*alone.session(256), ids);
    const auto n_layers = static_cast<int>(alone->info().n_layers);
    const std::vector<int> cuts = n_layers > 1 ? std::vector{0, 1, n_layers} : std::vector{0, n_layers};
    for (const int layers : cuts) {
      const ModelOnBackends model(data_dir() / "tiny" / file, {backend("remote", layers, {{"threads", "2"}}), cpu()});
      INFO(file << ", " << layers << " layers");
      CHECK(model->engine().placement().fallbacks.empty());
      const auto session = model.session(256);
      CHECK(same_bits(prompt_and_decode(*session, ids), expected));
      const std::vector<size_t> splits = splits_by_device(*session);
      const uint64_t staged = session->stats().executor.staged_bytes;
      if (layers == 0) CHECK((splits == std::vector<size_t>{0, 1} && staged == 0));
      if (layers == n_layers) CHECK((splits == std::vector<size_t>{1, 0} && staged == 0));
      if (layers == 1 && n_layers > 1) {
        CHECK(splits == std::vector<size_t>{1, 2});  // embedding on the cpu, layer 0 on the device, the rest on the cpu
        // The hidden state goes over and back: 73 rows each way.
        CHECK(staged == uint64_t{2} * 73 * model->info().n_embd * sizeof(float));
      }
    }
  }
}

TEST_CASE("remote/offload: every KV format gives the cpu's logits") {
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kQ8_0}) {
    const ModelOnCpu alone(quantised_file(), {1, "auto", format});
    const ModelOnBackends model(quantised_file(), {backend("remote", 1), cpu()}, format);
    const std::vector<int32_t> ids = tokens(alone, 73);
    const auto session = model.session(256);
    CHECK(same_bits(prompt_and_decode(*session, ids), prompt_and_decode(*alone.session(256), ids)));
    CHECK(session->stats().executor.staged_bytes > 0);
  }
}

TEST_CASE("remote/offload: two devices of one backend hand values to each other through the host") {
  const ModelOnCpu alone(tiny_file());
  const std::vector<int32_t> ids = tokens(alone, 73);
  const std::vector<float> expected = prompt_and_decode(*alone.session(256), ids);
  const ModelOnBackends model(tiny_file(), {backend("remote", 1, {{"devices", "2"}}), cpu()});
  REQUIRE(model->engine().devices().size() == 3);
  const auto session = model.session(256);
  CHECK(same_bits(prompt_and_decode(*session, ids), expected));
  const std::vector<size_t> splits = splits_by_device(*session);
  CHECK(splits[0] == 1);
  CHECK(splits[1] == 1);
  CHECK(splits[2] >= 1);
}

TEST_CASE("remote/offload: gpu_layers auto takes the layers that the device's memory holds and says so") {
  const auto loaded = [](uint64_t kib) {
    return std::make_unique<ModelOnBackends>(tiny_file(), std::vector{backend("remote", -1, {{"memory_kib", std::to_string(kib)}}), cpu()});
  };
  const auto layers = [](const ModelOnBackends& model) {
    const auto& devices = model->engine().placement().layer_device;
    return static_cast<uint32_t>(std::count(devices.begin(), devices.end(), 0u));
  };
  const auto all = loaded(1 << 20), none = loaded(0);
  const uint32_t n_layers = (*all)->info().n_layers;
  CHECK(layers(*all) == n_layers);
  CHECK(layers(*none) == 0);
  uint64_t too_little = 0, enough = 1 << 20;  // for one layer
  while (enough - too_little > 1) {
    const uint64_t middle = (too_little + enough) / 2;
    (layers(*loaded(middle)) > 0 ? enough : too_little) = middle;
  }
  const auto some = loaded(enough);
  CHECK(layers(*some) == 1);
  const auto& notices = some->notices();
  const std::string line = text("offload: 1 of {} layers on remote:0: ", n_layers);
  CHECK(std::count_if(notices.begin(), notices.end(), [&](const std::string& n) { return n.rfind(line, 0) == 0; }) == 1);
  const std::vector<int32_t> ids = tokens(*some, 73);
  CHECK(same_bits(prompt_and_decode(*some->session(256), ids), prompt_and_decode(*none->session(256), ids)));

  const std::vector<BackendSpec> too_many{backend("remote", 1, {{"memory_kib", std::to_string(too_little)}}), cpu()};
  CHECK_THAT(ModelOnBackends::refusal(tiny_file(), too_many), Catch::Contains("gpu_layers: 1 of ") && Catch::Contains("not one fits"));
}

#ifdef MINFER_TEST_LLAMA
TEST_CASE("remote/offload: factors of the rotation that all layers share lie on every device that rotates") {
  const ModelOnBackends model(data_dir() / "tiny/llama_F32_ropefreqs.gguf", {backend("remote", 1), cpu()});
  CHECK(model->engine().placement().vector_copies.size() == 1);
  CHECK(model->engine().placement().fallbacks.empty());
  CHECK(model->engine().placement().kv_device == std::vector<uint32_t>{0, 1});
}

TEST_CASE("remote/offload: weights that the model itself has worked out reach the device") {
  const auto file = data_dir() / "rope/llama_yarn.gguf";
  const ModelOnCpu alone(file);
  const ModelOnBackends model(file, {backend("remote", 1), cpu()});
  const std::vector<int32_t> ids = tokens(alone, 73);
  CHECK(same_bits(prompt_and_decode(*model.session(256), ids), prompt_and_decode(*alone.session(256), ids)));
}
#endif

TEST_CASE("remote/offload: layers that no listed backend takes are refused") {
  const ModelOnCpu alone(tiny_file());
  const uint32_t n_layers = alone->info().n_layers;
  std::vector<BackendSpec> too_few{backend("remote", 1), backend("cpu", 0)};
  CHECK_THAT(ModelOnBackends::refusal(tiny_file(), too_few), Catch::Contains("the listed backends take 1 of " + std::to_string(n_layers) +
                                                                             " layers; list one more backend or raise gpu_layers"));
  // One on the device, one on the cpu, nothing behind them: enough for two.
  const bool enough = n_layers == 2;
  too_few[1] = backend("cpu", 1, {{"threads", "2"}});
  if (enough) {
    const ModelOnBackends model(tiny_file(), too_few);
    const std::vector<int32_t> ids = tokens(alone, 73);
    CHECK(same_bits(prompt_and_decode(*model.session(256), ids), prompt_and_decode(*alone.session(256), ids)));
  } else {
    CHECK_THAT(ModelOnBackends::refusal(tiny_file(), too_few), Catch::Contains("the listed backends take 2 of"));
  }
}

TEST_CASE("remote/fallback: what the device lacks runs on the cpu and is said once for all layers that have it in common") {
  const ModelOnCpu alone(tiny_file());
  const std::vector<int32_t> ids = tokens(alone, 73);
  const std::vector<float> expected = prompt_and_decode(*alone.session(256), ids);
  const uint32_t n_layers = alone->info().n_layers;
  for (const char* refuse : {"rms_norm", "add", "matmul@1", "attention", "kv_store@0", "rope", "mul", "silu@1"}) {
    const ModelOnBackends model(tiny_file(), {backend("remote", -1, {{"refuse", refuse}}), cpu()});
    INFO("refused: " << refuse);
    const auto& fallbacks = model->engine().placement().fallbacks;
    REQUIRE_FALSE(fallbacks.empty());
    for (const Fallback& fallback : fallbacks) {
      CHECK(fallback.from_device == 0);
      CHECK(fallback.to_device == 1);
      const std::string line = describe(fallback, model->engine().devices(), "F32");  // all weights of the file are
      CHECK_THAT(line, Catch::Contains("is not supported on remote:0, runs on cpu"));
      const std::string move = line.substr(line.find(": "));  // layers that have it in common share a line
      const auto says_it = [&](const std::string& n) { return n.ends_with(move) && n.starts_with("layer") == (fallback.layer < n_layers); };
      CHECK(std::count_if(model.notices().begin(), model.notices().end(), says_it) == 1);
    }
    const auto session = model.session(256);
    CHECK(same_bits(prompt_and_decode(*session, ids), expected));
    CHECK(session->stats().executor.staged_bytes > 0);
    CHECK(splits_by_device(*session)[0] > 0);
    CHECK(splits_by_device(*session)[1] > 0);
  }
  const ModelOnBackends kv_moved(tiny_file(), {backend("remote", -1, {{"refuse", "attention"}}), cpu()});
  CHECK(kv_moved->engine().placement().kv_device == std::vector<uint32_t>(n_layers, 1));
  const std::string refusal = ModelOnBackends::refusal(tiny_file(), {backend("remote", -1, {{"refuse", "attention@1"}}, true), cpu()});
  CHECK_THAT(refusal, Catch::Contains("layer 1: ") && Catch::Contains("is not supported on remote:0, runs on cpu (strict is set)"));
}

TEST_CASE("remote/fallback: an embedding that the device lacks moves and takes the output along that shares its matrix") {
  const std::vector<BackendSpec> specs{backend("remote", -1, {{"refuse", "get_rows"}}), cpu()};
  for (const auto& file : {tiny_file(), untied_file()}) {
    const ModelOnCpu alone(file);
    const ModelOnBackends model(file, specs);
    const auto& fallbacks = model->engine().placement().fallbacks;
    CHECK(std::any_of(fallbacks.begin(), fallbacks.end(), [](const Fallback& f) { return f.tied; }) == (file == tiny_file()));
    const std::vector<int32_t> ids = tokens(alone, 73);
    const auto session = model.session(256);
    CHECK(same_bits(prompt_and_decode(*session, ids), prompt_and_decode(*alone.session(256), ids)));
    CHECK(session->stats().executor.staged_bytes > 0);
  }
}

TEST_CASE("remote/fallback: without a device that can take over the model is refused") {
  CHECK_THAT(ModelOnBackends::refusal(tiny_file(), {backend("remote", -1, {{"refuse", "silu@1"}})}),
             Catch::Contains("layer 1: no listed backend supports"));
}

TEST_CASE("remote/fallback: fusions that the device lacks are left out there alone") {
  const ModelOnCpu alone(tiny_file());
  const std::vector<int32_t> ids = tokens(alone, 73);
  const auto reference = alone.session(256);
  const std::vector<float> expected = prompt_and_decode(*reference, ids);
  for (const char* refuse : {"fused_qkv", "fused_ffn", "fused_qkv,fused_ffn,silu_mul"}) {
    const ModelOnBackends model(tiny_file(), {backend("remote", 1, {{"refuse", refuse}}), cpu()});
    INFO("refused: " << refuse);
    CHECK(model->engine().placement().fallbacks.empty());
    const auto session = model.session(256);
    CHECK(same_bits(prompt_and_decode(*session, ids), expected));
    const auto& graph = session->last_graph()->graph;
    CHECK(graph.nodes.size() > reference->last_graph()->graph.nodes.size());
    size_t fused_on_cpu = 0;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      fused_on_cpu +=
          session->last_graph()->node_device[n] == 1 && (graph.nodes[n].op == Op::kFusedQkv || graph.nodes[n].op == Op::kFusedFfn);
    CHECK(fused_on_cpu == 2 * (model->info().n_layers - 1));
  }
}

TEST_CASE("remote/observe: every node's values are seen across devices and are the cpu's") {
  using Seen = std::vector<std::vector<float>>;
  const auto observe = [](const ModelOnBackends& model, Seen& seen) {
    CParams cparams;
    cparams.observe = true;
    const auto session = model.session(256, cparams);
    session->set_observer([&](const Graph&, NodeId, std::span<const float> values) { seen.emplace_back(values.begin(), values.end()); });
    const std::vector<float> logits = prompt_and_decode(*session, tokens(model, 73));
    return logits;
  };
  const ModelOnCpu alone(tiny_file());
  const ModelOnBackends model(tiny_file(), {backend("remote", 1), cpu()});
  Seen expected, seen;
  const std::vector<float> expected_logits = observe(alone, expected);
  CHECK(same_bits(observe(model, seen), expected_logits));
  REQUIRE(seen.size() == expected.size());
  REQUIRE(seen.size() > 50);
  size_t equal = 0;
  for (size_t i = 0; i < seen.size(); ++i) equal += same_bits(seen[i], expected[i]);
  CHECK(equal == seen.size());
}
