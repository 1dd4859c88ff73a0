// Session::remove on the cpu backend, in each format of the KV cache: which rows move where, how their keys are turned, and what that does
// to logits.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "golden.hpp"
#include "kernels/kv_layout.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

struct Format {
  KvFormat format;
  cpu::KvFormat stored_as;
  const char* name;
  double key_error;      // of a turned key against the turn in double, as a part of the head's largest element
  double one_layer_rms;  // logits of a one-layer model after a shift against a fresh prefill: rounding of the keys alone
};
// Measured at most: keys 1.1e-7, 4.5e-4, 3.9e-3 (half a step of the format); logits 1.2e-6, 6.1e-4, 0.015.
const Format kFormats[] = {{KvFormat::kF32, cpu::KvFormat::kF32, "f32", 4e-7, 1e-5},
                           {KvFormat::kF16, cpu::KvFormat::kF16, "f16", 1e-3, 4e-3},
                           {KvFormat::kQ8_0, cpu::KvFormat::kQ8_0, "q8_0", 1e-2, 0.05}};

struct ModelCase {
  const char* file;
  const char* architecture;
  bool interleaved;
};
const ModelCase kModels[] = {
#ifdef MINFER_TEST_QWEN2
    {"qwen2_untied_F32.gguf", "qwen2", false},
#endif
#ifdef MINFER_TEST_LLAMA
    {"llama_F32.gguf", "llama", true},
    {"llama_F32_ropefreqs.gguf", "llama", true},
#endif
#ifdef MINFER_TEST_QWEN3
    {"qwen3_F32.gguf", "qwen3", false},
#endif
};

std::vector<int32_t> tokens_of(const ModelCase& model) {
  for (const TinyCase& tiny : tiny_cases(model.architecture))
    if (tiny.file == model.file) return tiny_reference(tiny).back().ids;
  FAIL("no such model");
  return {};
}

std::vector<int32_t> join(const std::vector<int32_t>& tokens, size_t first, size_t count) {
  std::vector<int32_t> left(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first));
  left.insert(left.end(), tokens.begin() + static_cast<std::ptrdiff_t>(first + count), tokens.end());
  return left;
}

// K and V of one layer at the positions of a sequence: canonical bytes, and values.
struct LayerRows {
  std::vector<std::string> k, v;
  std::vector<std::vector<float>> k_values;
};
LayerRows rows_of(const Session& session, const Format& format, uint32_t layer, SeqId seq = 0) {
  const KvLayer& kv = session.kv().layers()[layer];
  const cpu::KvLayout layout{format.stored_as, static_cast<int32_t>(kv.layout.n_head_kv), static_cast<int32_t>(kv.layout.head_dim)};
  const auto row_bytes = static_cast<size_t>(cpu::kv_row_bytes(layout));
  LayerRows rows;
  for (uint32_t p = 0; p < session.cursor(seq); ++p) {
    const int64_t block = session.blocks().table()[seq * session.cparams().blocks_per_seq() + p / 64];
    std::string k(row_bytes, '\0'), v(row_bytes, '\0');
    cpu::kv_read_row(layout, kv.k->host_ptr(), kv.v->host_ptr(), block * 64 + p % 64, k.data(), v.data());
    std::vector<float> values(size_t{kv.layout.n_head_kv} * kv.layout.head_dim);
    cpu::kv_row_to_f32(layout, k.data(), values.data());
    rows.k.push_back(std::move(k));
    rows.v.push_back(std::move(v));
    rows.k_values.push_back(std::move(values));
  }
  return rows;
}

double rms_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// The model with its first layer alone, in which a key depends on its token and position only.
std::filesystem::path one_layer_model(const ModelCase& model, const TempDir& temp) {
  std::string bytes = read_file(data_dir() / "tiny" / model.file);
  const std::string key = std::string(model.architecture) + ".block_count";
  const size_t at = bytes.find(key) + key.size();
  uint32_t type = 0, count = 1;
  std::memcpy(&type, &bytes.at(at), 4);
  REQUIRE(type == 4);  // u32
  std::memcpy(&bytes.at(at + 4), &count, 4);
  const auto file = temp.path() / model.file;
  write_file(file, bytes);
  return file;
}

}  // namespace

TEST_CASE("golden/kv shift: rows before a removal stay and those behind it move down with V verbatim and K turned", "[golden]") {
  constexpr uint32_t kFirst = 20, kCount = 75, kTokens = 200;
  for (const ModelCase& model_case : kModels) {
    const std::vector<int32_t> tokens = tokens_of(model_case);
    for (const Format& format : kFormats) {
      const ModelOnCpu model(data_dir() / "tiny" / model_case.file, {2, "auto", format.format});
      const auto session = model.session(256);
      run_tokens(*session, tokens, 0);
      const uint32_t n_layers = model->info().n_layers;
      std::vector<LayerRows> before;
      for (uint32_t layer = 0; layer < n_layers; ++layer) before.push_back(rows_of(*session, format, layer));
      REQUIRE(session->remove(0, kFirst, kCount).ok());
      REQUIRE(session->cursor(0) == kTokens - kCount);
      const uint32_t head_dim = model->info().head_dim, half = head_dim / 2;
      const bool scaled = std::string(model_case.file).find("ropefreqs") != std::string::npos;
      double worst = 0, turned = 0, freq_base = 0;
      for (const Node& node : session->last_graph()->graph.nodes)
        if (node.attrs.rope_freq_base > 0) freq_base = node.attrs.rope_freq_base;
      REQUIRE(freq_base > 1);
      for (uint32_t layer = 0; layer < n_layers; ++layer) {
        const LayerRows after = rows_of(*session, format, layer);
        bool same_before = true, same_v = true;
        for (uint32_t p = 0; p < kFirst; ++p) same_before &= after.k[p] == before[layer].k[p] && after.v[p] == before[layer].v[p];
        for (uint32_t p = kFirst; p < kTokens - kCount; ++p) {
          same_v &= after.v[p] == before[layer].v[p + kCount];
          if (scaled) continue;  // its factors are a secret of the file; logits check them below
          const std::vector<float>&k = after.k_values[p], &old = before[layer].k_values[p + kCount];
          for (uint32_t h = 0; h < model->info().n_head_kv; ++h) {
            double largest = 1e-30, error = 0;
            for (uint32_t i = 0; i < half; ++i) {
              const uint32_t a = h * head_dim + (model_case.interleaved ? 2 * i : i), b = a + (model_case.interleaved ? 1 : half);
              const double angle = -static_cast<double>(kCount) * std::pow(freq_base, -2.0 * i / head_dim);
              const double x = old[a] * std::cos(angle) - old[b] * std::sin(angle), y = old[a] * std::sin(angle) + old[b] * std::cos(angle);
              largest = std::max({largest, std::abs(x), std::abs(y)});
              error = std::max({error, std::abs(x - k[a]), std::abs(y - k[b])});
              turned = std::max(turned, std::abs(static_cast<double>(old[a]) - k[a]));
            }
            worst = std::max(worst, error / largest);
          }
        }
        INFO(model_case.file << " " << format.name << " layer " << layer);
        CHECK(same_before);
        CHECK(same_v);
      }
      std::printf("%s, %s KV: largest error of a turned key %.2g of the head\n", model_case.file, format.name, worst);
      CHECK(worst <= format.key_error);
      if (!scaled) CHECK(turned > 0.1);
    }
  }
}

TEST_CASE("golden/kv shift: removing the tail is a rollback to the bit in every format", "[golden]") {
  for (const ModelCase& model_case : kModels) {
    const std::vector<int32_t> tokens = tokens_of(model_case);
    const std::vector<int32_t> head(tokens.begin(), tokens.begin() + 100), more(tokens.begin() + 150, tokens.end());
    for (const Format& format : kFormats) {
      const ModelOnCpu model(data_dir() / "tiny" / model_case.file, {2, "auto", format.format});
      const auto session = model.session(256), fresh = model.session(256);
      run_tokens(*session, tokens, 0);
      REQUIRE(session->remove(0, 100, 100).ok());
      run_tokens(*fresh, head, 0);
      CHECK(run_tokens(*session, more, 50) == run_tokens(*fresh, more, 50));
      REQUIRE(session->remove(0, 0, 150).ok());
      CHECK(session->cursor(0) == 0);
      CHECK(session->blocks().n_free() == 4);
      const auto empty = model.session(256);
      CHECK(run_tokens(*session, head, 100) == run_tokens(*empty, head, 100));
    }
  }
}

TEST_CASE("golden/kv shift: a one-layer model gives the logits of a fresh prefill within the rounding of its keys", "[golden]") {
  const TempDir temp;
  for (const ModelCase& model_case : kModels) {
    const std::vector<int32_t> tokens = tokens_of(model_case);
    const std::vector<int32_t> more(tokens.begin(), tokens.begin() + 40);
    const auto file = one_layer_model(model_case, temp);
    for (const Format& format : kFormats) {
      const ModelOnCpu model(file, {2, "auto", format.format});
      REQUIRE(model->info().n_layers == 1);
      double worst = 0;
      for (const auto& [first, count] : {std::pair<uint32_t, uint32_t>{0, 100}, {30, 64}, {1, 1}}) {
        const auto shifted = model.session(256), fresh = model.session(256);
        run_tokens(*shifted, tokens, 0);
        REQUIRE(shifted->remove(0, first, count).ok());
        run_tokens(*fresh, join(tokens, first, count), 0);
        worst = std::max(worst, rms_difference(run_tokens(*shifted, more, 40), run_tokens(*fresh, more, 40)));
      }
      std::printf("%s, one layer, %s KV: RMS after a shift %.2g\n", model_case.file, format.name, worst);
      CHECK(worst <= format.one_layer_rms);
    }
  }
}

// In deeper layers the rows that moved keep what they learnt from the removed ones, so a shift is no fresh prefill: the tolerance class
// "shift" only says that it stays near. Measured 0.49 to 0.94 RMS, the same in every format, where logits spread by 2.4 to 3.5.
TEST_CASE("golden/kv shift: deep models stay within the tolerance of a shift in every format", "[golden]") {
  for (const ModelCase& model_case : kModels) {
    const std::vector<int32_t> tokens = tokens_of(model_case);
    const std::vector<int32_t> more(tokens.begin(), tokens.begin() + 40);
    for (const Format& format : kFormats) {
      const ModelOnCpu model(data_dir() / "tiny" / model_case.file, {2, "auto", format.format});
      const auto shifted = model.session(256), fresh = model.session(256);
      run_tokens(*shifted, tokens, 0);
      REQUIRE(shifted->remove(0, 0, 100).ok());
      run_tokens(*fresh, join(tokens, 0, 100), 0);
      const double rms = rms_difference(run_tokens(*shifted, more, 40), run_tokens(*fresh, more, 40));
      std::printf("%s, %s KV: RMS after a shift %.3f\n", model_case.file, format.name, rms);
      CHECK(rms <= 1.5);
      CHECK(rms > 0);
    }
  }
}

TEST_CASE("golden/kv shift: a shift leaves a sequence that shares its prefix alone in every format", "[golden]") {
  for (const ModelCase& model_case : kModels) {
    const std::vector<int32_t> tokens = tokens_of(model_case);
    for (const Format& format : kFormats) {
      const ModelOnCpu model(data_dir() / "tiny" / model_case.file, {2, "auto", format.format});
      CParams two;
      two.max_seqs = 2;
      const auto session = model.session(256, two), control = model.session(256, two);
      const SeqChunk shared{0, std::span(tokens).subspan(0, 90), 0}, more{1, std::span(tokens).subspan(100, 30), 30};
      for (Session* s : {session.get(), control.get()}) {
        REQUIRE(s->forward({&shared, 1}).ok());
        REQUIRE(s->share_prefix(0, 1, 80).ok());
      }
      const LayerRows before = rows_of(*session, format, 1, 1);
      REQUIRE(session->remove(0, 5, 40).ok());
      const LayerRows after = rows_of(*session, format, 1, 1);
      CHECK(after.k == before.k);
      CHECK(after.v == before.v);
      const auto found = session->forward({&more, 1}), expected = control->forward({&more, 1});
      REQUIRE(found.ok());
      REQUIRE(expected.ok());
      CHECK(std::equal(found->values.begin(), found->values.end(), expected->values.begin(), expected->values.end()));
    }
  }
}
