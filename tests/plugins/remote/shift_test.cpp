// Positions taken out of sequences whose KV lies on the device: rows move and keys are turned there, to the cpu's bits.
#include "offload_run.hpp"
#include "runtime/generate.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

constexpr uint32_t kTokens = 150;

// Logits of ten tokens behind a removal from a prompt whose last chunk nobody has waited for, then of one token behind a second removal.
std::vector<float> shifted_logits(const ModelOnBackends& model, uint32_t first, uint32_t count) {
  const auto session = model.session(256);
  const std::vector<int32_t> ids = tokens(model, kTokens), more = tokens(model, 11, 9);
  run_tokens(*session, ids, 0, 64);
  const Status removed = session->remove(0, first, count);
  if (!removed.ok()) FAIL(removed.error().text);
  CHECK(session->cursor(0) == kTokens - count);
  std::vector<float> rows = run_tokens(*session, {more.begin(), more.begin() + 10}, 10);
  REQUIRE(session->remove(0, 0, 3).ok());
  const std::vector<float> last = run_tokens(*session, {more[10]}, 1);
  rows.insert(rows.end(), last.begin(), last.end());
  return rows;
}

// Of a tiny model: the formats that its heads can be stored in.
std::vector<KvFormat> formats_of(const std::string& file) {
  const ModelOnCpu model(data_dir() / "tiny" / file);
  std::vector<KvFormat> formats{KvFormat::kF32, KvFormat::kF16};
  if (model->info().head_dim % 32 == 0) formats.push_back(KvFormat::kQ8_0);
  return formats;
}

}  // namespace

TEST_CASE("remote/shift: positions removed on the device leave the cpu's logits in every KV format") {
  size_t with_q8_0 = 0;
  for (const std::string& file : tiny_files()) {
    for (const KvFormat format : formats_of(file)) {
      with_q8_0 += format == KvFormat::kQ8_0;
      const ModelOnCpu alone(data_dir() / "tiny" / file, {2, "auto", format});
      for (const auto& [first, count] : {std::pair<uint32_t, uint32_t>{0, 64}, {5, 70}, {140, 10}}) {
        const std::vector<float> expected = shifted_logits(alone, first, count);
        for (const int layers : {1, static_cast<int>(alone->info().n_layers)}) {
          const ModelOnBackends model(data_dir() / "tiny" / file, {backend("remote", layers, {{"threads", "2"}}), cpu()}, format);
          INFO(file << ", format " << static_cast<int>(format) << ", " << layers << " layers, removed " << count << " from " << first);
          CHECK(model->engine().placement().kv_device.front() == 0);
          CHECK(same_bits(shifted_logits(model, first, count), expected));
        }
      }
    }
  }
  CHECK(with_q8_0 > 0);
}

TEST_CASE("remote/shift: a removal from one sequence leaves another that shares its blocks on the device alone") {
  const auto run = [](const ModelOnBackends& model) {
    CParams two;
    two.max_seqs = 2;
    const auto session = model.session(256, two);
    const std::vector<int32_t> prefix = tokens(model, 100, 3), more = tokens(model, 5, 4);
    run_tokens(*session, prefix, 0);
    REQUIRE(session->share_prefix(0, 1, 100).ok());
    REQUIRE(session->remove(0, 5, 40).ok());
    const SeqChunk both[] = {{0, more, 5}, {1, more, 5}};
    const auto logits = session->forward(both);
    if (!logits.ok()) FAIL(logits.error().text);
    return std::vector<float>(logits->values.begin(), logits->values.end());
  };
  const ModelOnCpu alone(tiny_file());
  const std::vector<float> expected = run(alone);
  for (const int layers : {1, static_cast<int>(alone->info().n_layers)})
    CHECK(same_bits(run(ModelOnBackends(tiny_file(), {backend("remote", layers), cpu()})), expected));
}

TEST_CASE("remote/shift: a context shift in the middle of generation gives the cpu's tokens") {
  struct Run {
    std::vector<int32_t> tokens;
    uint32_t n_shifts;
  };
  const auto run = [](const ModelOnBackends& model) {
    GenerateOptions options;
    options.n_predict = 150;
    options.sampling.temperature = 0;
    options.context_shift = true;
    Run out;
    GenerateCallbacks callbacks;
    callbacks.on_token = [&](uint32_t, int32_t token) { out.tokens.push_back(token); };
    const auto session = model.session(128);
    const auto result = generate(*session, model->tokenizer(), tokens(model, 60, 6), options, callbacks);
    if (!result.ok()) FAIL(result.error().text);
    out.n_shifts = result->n_shifts;
    return out;
  };
  const ModelOnCpu alone(tiny_file());
  const Run expected = run(alone);
  REQUIRE(expected.n_shifts > 0);
  for (const int layers : {1, static_cast<int>(alone->info().n_layers)}) {
    const Run found = run(ModelOnBackends(tiny_file(), {backend("remote", layers), cpu()}));
    CHECK(found.n_shifts == expected.n_shifts);
    CHECK(found.tokens == expected.tokens);
  }
}
