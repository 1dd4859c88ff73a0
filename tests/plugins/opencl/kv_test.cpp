// KV regions on the device: every format, sequences in one batch and with a shared prefix, keys that are turned.
#include "opencl_run.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

constexpr KvFormat kFormats[] = {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0};

CParams with_seqs(uint32_t n) {
  CParams cparams;
  cparams.max_seqs = n;
  return cparams;
}

std::vector<float> forward(Session& session, const std::vector<SeqChunk>& chunks) {
  const auto logits = session.forward(chunks);
  if (!logits.ok()) FAIL(logits.error().text);
  return {logits->values.begin(), logits->values.end()};
}

}  // namespace

TEST_CASE("opencl/kv: every format gives the cpu's logits also beyond 256 positions") {
  for (const KvFormat format : kFormats) {
    const ModelOnCpu alone(quantised_file(), {1, "auto", format});
    const ModelOnBackends model(quantised_file(), {opencl(1), cpu()}, format);
    REQUIRE(alone->info().n_ctx_train > 300);
    const std::vector<int32_t> ids = tokens(alone, 290);
    const auto session = model.session(300);
    CHECK(same_bits(run_tokens(*session, ids, 40, 70), run_tokens(*alone.session(300), ids, 40, 70)));
    CHECK(session->stats().executor.staged_bytes > 0);
  }
}

TEST_CASE("opencl/kv: sequences that share a prefix and part in one batch get what each gets alone") {
  for (const KvFormat format : kFormats) {
    const ModelOnCpu alone(quantised_file(), {1, "auto", format});
    const std::vector<int32_t> prefix = tokens(alone, 70, 3), tail_a = tokens(alone, 5, 4), tail_b = tokens(alone, 5, 5);
    const auto expected = [&](const std::vector<int32_t>& tail) {
      const auto session = alone.session(256);
      run_tokens(*session, prefix, 1);
      return run_tokens(*session, tail, 5);
    };
    const ModelOnBackends model(quantised_file(), {opencl()}, format);
    const auto session = model.session(256, with_seqs(2));
    forward(*session, {{0, prefix, 1}});
    REQUIRE(session->share_prefix(0, 1, 70).ok());
    std::vector<float> both = expected(tail_a);
    const std::vector<float> second = expected(tail_b);
    both.insert(both.end(), second.begin(), second.end());
    CHECK(same_bits(forward(*session, {{0, tail_a, 5}, {1, tail_b, 5}}), both));
  }
}

TEST_CASE("opencl/kv: positions taken out of a sequence leave the cpu's logits in every format") {
  std::vector<std::filesystem::path> files{quantised_file()};
#ifdef MINFER_TEST_LLAMA
  files.push_back(data_dir() / "tiny/llama_F32_ropefreqs.gguf");  // interleaved, with frequency factors
#endif
  for (const auto& file : files)
    for (const KvFormat format : kFormats) {
      if (format == KvFormat::kQ8_0 && file != quantised_file()) continue;
      const ModelOnCpu alone(file, {1, "auto", format});
      const ModelOnBackends model(file, {opencl()}, format);
      const std::vector<int32_t> ids = tokens(alone, 100);
      const auto run = [&](Session& session) {
        run_tokens(session, {ids.begin(), ids.begin() + 90}, 1);
        const Status removed = session.remove(0, 7, 40);
        if (!removed.ok()) FAIL(removed.error().text);
        return run_tokens(session, {ids.begin() + 90, ids.end()}, 10);
      };
      INFO(file.filename().string());
      CHECK(same_bits(run(*model.session(256)), run(*alone.session(256))));
    }
}

TEST_CASE("opencl/kv: rows of the cpu go on on the device and come back as the same bytes in every format") {
  for (const KvFormat format : kFormats) {
    const ModelOnCpu alone(quantised_file(), {1, "auto", format});
    const ModelOnBackends model(quantised_file(), {opencl(1), cpu()}, format);
    const std::vector<int32_t> ids = tokens(alone, 75);
    const auto from = alone.session(256), to = model.session(256, with_seqs(2));
    run_tokens(*from, {ids.begin(), ids.begin() + 70}, 0);
    run_tokens(*to, {ids.begin() + 40, ids.end()}, 0);  // sequence 0 has the first block
    const auto rows_of = [](const Session& session, SeqId seq, uint32_t layer) {
      std::vector<std::byte> bytes(session.kv_layer_bytes(70));
      if (const Status done = session.export_kv(seq, layer, bytes); !done.ok()) FAIL(done.error().text);
      return bytes;
    };
    const Status imported = to->import_kv(1, 70, [&](uint32_t layer, std::span<std::byte> bytes) -> Status {
      const std::vector<std::byte> rows = rows_of(*from, 0, layer);
      std::copy(rows.begin(), rows.end(), bytes.begin());
      return {};
    });
    REQUIRE(imported.ok());
    for (uint32_t layer = 0; layer < alone->info().n_layers; ++layer) CHECK(rows_of(*to, 1, layer) == rows_of(*from, 0, layer));
    const std::vector<int32_t> tail(ids.begin() + 70, ids.end());
    CHECK(same_bits(forward(*to, {{1, tail, 5}}), run_tokens(*from, tail, 5)));
  }
}
