#include "golden.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/perplexity.hpp"
#include "support/support.hpp"

namespace minfer::test {

using nlohmann::json;

std::vector<TinyCase> tiny_cases(const std::string& architecture) {
  const json manifest = json::parse(read_file(data_dir() / "tiny/manifest.json"));
  std::vector<TinyCase> cases;
  for (const json& entry : manifest["files"])
    if (entry["arch"] == architecture)
      cases.push_back({entry["file"], entry["type"], entry["sim_q8_rms_dlogit"], entry["sim_q8_max_abs_dlogit"]});
  return cases;
}

std::vector<TinySequence> tiny_reference(const TinyCase& tiny) {
  std::filesystem::path name = tiny.file;
  return read_reference(data_dir() / "tiny/ref" / name.replace_extension(".json"));
}

std::vector<TinySequence> read_reference(const std::filesystem::path& path) {
  const json reference = json::parse(read_file(path));
  std::vector<TinySequence> sequences;
  for (const json& entry : reference["sequences"]) sequences.push_back({entry["ids"], entry["rows"], entry["logits"]});
  return sequences;
}

Difference tiny_limits(const TinyCase& tiny) {
  // Float weights are multiplied with float activations, so only float rounding is left.
  if (tiny.type == "F32" || tiny.type == "F16" || tiny.type == "BF16") return {1e-5, 1e-4};
  return {1.6 * tiny.sim_rms, 2.5 * tiny.sim_max};
}

Difference difference_from_reference(const ModelOnCpu& model, const std::vector<TinySequence>& reference) {
  double sum = 0, worst = 0;
  size_t count = 0;
  for (const TinySequence& sequence : reference) {
    const auto session = model.session(256);
    const std::vector<float> logits = run_tokens(*session, sequence.ids, static_cast<uint32_t>(sequence.ids.size()));
    const size_t n_vocab = model->info().n_vocab;
    for (size_t r = 0; r < sequence.rows.size(); ++r)
      for (size_t v = 0; v < n_vocab; ++v) {
        const double d = logits[sequence.rows[r] * n_vocab + v] - sequence.logits[r][v];
        sum += d * d;
        worst = std::max(worst, std::abs(d));
        ++count;
      }
  }
  return {std::sqrt(sum / static_cast<double>(count)), worst};
}

namespace {

// A file of 16-bit numbers: 1024 times how far each token's logit is below the best.
std::vector<double> read_row(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  std::vector<uint16_t> below(bytes.size() / 2);
  std::memcpy(below.data(), bytes.data(), below.size() * 2);
  double sum = 0;
  for (const uint16_t b : below) sum += std::exp(-b / 1024.0);
  std::vector<double> row;
  for (const uint16_t b : below) row.push_back(-b / 1024.0 - std::log(sum));
  return row;
}

}  // namespace

std::vector<PromptReference> prompt_references(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir() / folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<PromptReference> prompts;
  for (const auto& file : files) {
    const json entry = json::parse(read_file(file));
    PromptReference prompt;
    prompt.name = file.stem();
    prompt.ids = entry["ids"].get<std::vector<int32_t>>();
    for (const json& position : entry["positions"]) {
      prompt.positions.push_back({position["pos"], {}});
      for (const json& pair : position["top"]) prompt.positions.back().top.emplace_back(pair[0].get<int32_t>(), pair[1].get<double>());
    }
    for (const json& step : entry["greedy"]) prompt.greedy.push_back({step["id"], step["margin"]});
    prompt.last_row = read_row(std::filesystem::path(file).replace_extension(".last.u16"));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void Agreement::add(const PromptReference::Position& reference, std::span<const float> logits) {
  const double log_sum = log_sum_exp(logits);
  double kl = 0, reference_rest = 1, our_rest = 1;
  for (size_t i = 0; i < reference.top.size(); ++i) {
    const auto [id, log_p] = reference.top[i];
    const double log_q = static_cast<double>(logits[static_cast<size_t>(id)]) - log_sum;
    kl += std::exp(log_p) * (log_p - log_q);
    reference_rest -= std::exp(log_p);
    our_rest -= std::exp(log_q);
    const double difference = std::abs(log_p - log_q);
    if (i < 10) top10_dlogprob_max = std::max(top10_dlogprob_max, difference);
    if (i > 0) continue;
    top1_dlogprob_sum += difference;
    top1_dlogprob_max = std::max(top1_dlogprob_max, difference);
  }
  if (reference_rest > 1e-12 && our_rest > 1e-12) kl += reference_rest * std::log(reference_rest / our_rest);
  kl_sum += kl;
  kl_max = std::max(kl_max, kl);
  ++positions;
  const double margin = reference.top[0].second - reference.top[1].second;
  if (argmax(logits) == reference.top[0].first)
    ++same_top1;
  else
    worst_margin_missed = std::max(worst_margin_missed, margin);
}

void Agreement::add_greedy(const PromptReference::GreedyStep& reference, std::span<const float> logits) {
  ++greedy_steps;
  if (argmax(logits) == reference.id)
    ++greedy_same;
  else
    worst_greedy_margin_missed = std::max(worst_greedy_margin_missed, reference.margin);
}

void Agreement::add_full(std::span<const double> reference, std::span<const float> logits) {
  const double log_sum = log_sum_exp(logits);
  double kl = 0;
  for (size_t i = 0; i < reference.size(); ++i) kl += std::exp(reference[i]) * (reference[i] - (static_cast<double>(logits[i]) - log_sum));
  full_kl_sum += kl;
  full_kl_max = std::max(full_kl_max, kl);
  ++full_rows;
}

}  // namespace minfer::test
