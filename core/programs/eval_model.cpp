// minfer-eval logits and perplexity: what runs the model.
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "programs/eval_commands.hpp"
#include "programs/loading.hpp"
#include "programs/prompt_source.hpp"
#include "runtime/generate.hpp"
#include "runtime/logits.hpp"
#include "runtime/perplexity.hpp"

namespace minfer::programs {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "--raw writes little-endian floats as they lie in memory");

Result<Loaded> open_model(const EvalArguments& arguments) {
  MINFER_ASSIGN(const std::filesystem::path path, find_model(arguments.config));
  return load_model(arguments.config, path, arguments.backends, print_notice);
}

Result<std::vector<int32_t>> read_ids(const std::string& list) {
  std::vector<int32_t> ids;
  for (const char *at = list.data(), *end = at + list.size(); at <= end; ++at) {
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0 || (next != end && *next != ',')) return invalid("--ids: expected numbers as in 1,2,3");
    ids.push_back(id);
    at = next;
  }
  return ids;
}

Status print(const Json& json) {
  const std::string line = json.dump() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0)
    return io_error("standard output: {}", std::strerror(errno));
  return {};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Status eval_logits(const EvalArguments& arguments) {
  const ParsedOptions& options = arguments.options;
  *arguments.code = kUsage;
  MINFER_ASSIGN(const std::vector<int32_t> ids, read_ids(options.value("ids")));
  MINFER_ASSIGN(const uint32_t last, number_option(options, "last", 1, 1, UINT32_MAX));
  if (last > ids.size()) return invalid("--last: {} rows are wanted, --ids has {} tokens", last, ids.size());
  MINFER_ASSIGN(const uint32_t top, number_option(options, "top", 10, 0, UINT32_MAX));
  MINFER_ASSIGN(const uint32_t batch, number_option(options, "batch", arguments.config.context.n_batch, 1, 65536));
  *arguments.code = kFailed;
  MINFER_ASSIGN(const Loaded loaded, open_model(arguments));
  const Model& model = *loaded.model;
  std::string note;
  MINFER_ASSIGN(const uint32_t n_ctx, decide_n_ctx(arguments.config.context.n_ctx, kDefaultContextTokens, static_cast<uint32_t>(ids.size()),
                                                   model.info().n_ctx_train, &note));
  MINFER_ASSIGN(const auto session, Session::create(model.engine(), session_params(arguments.config, n_ctx)));

  const std::string raw_path = options.value("raw");
  std::unique_ptr<std::FILE, CloseFile> raw;
  if (!raw_path.empty()) {
    raw.reset(std::fopen(raw_path.c_str(), "we"));
    if (!raw) return io_error("{}: {}", raw_path, std::strerror(errno));
  }
  Json rows = Json::array();
  MINFER_TRY(for_last_logits(*session, ids, last, batch, [&](uint32_t position, std::span<const float> row) -> Status {
    if (raw && std::fwrite(row.data(), sizeof(float), row.size(), raw.get()) != row.size())
      return io_error("{}: {}", raw_path, std::strerror(errno));
    MINFER_ASSIGN(const std::vector<TokenLogit> best, top_logits(row, top));
    Json list = Json::array();
    for (const TokenLogit& entry : best) list.push_back({entry.token, entry.logit});
    rows.push_back({{"pos", position}, {"logsumexp", log_sum_exp(row)}, {"top", std::move(list)}});
    return {};
  }));
  if (raw && std::fclose(raw.release()) != 0) return io_error("{}: {}", raw_path, std::strerror(errno));
  return print({{"n_vocab", model.info().n_vocab}, {"rows", std::move(rows)}});
}

Status eval_perplexity(const EvalArguments& arguments) {
  const ParsedOptions& options = arguments.options;
  *arguments.code = kUsage;
  MINFER_ASSIGN(const uint32_t n_ctx, number_option(options, "ctx", 512, 4, 1 << 24));
  if (n_ctx % 2 != 0) return invalid("--ctx: {} is not even", n_ctx);
  *arguments.code = kFailed;
  MINFER_ASSIGN(const std::string bytes, read_whole_file(options.value("file")));
  MINFER_ASSIGN(const Loaded loaded, open_model(arguments));
  const Model& model = *loaded.model;
  if (n_ctx > model.info().n_ctx_train) return invalid("--ctx {}: the model's context is {}", n_ctx, model.info().n_ctx_train);
  MINFER_ASSIGN(const std::vector<TokenId> tokens, model.tokenizer().encode(bytes));
  const std::vector<int32_t> ids(tokens.begin(), tokens.end());
  MINFER_ASSIGN(const auto session, Session::create(model.engine(), session_params(arguments.config, n_ctx)));
  MINFER_ASSIGN(const Perplexity result, perplexity(*session, ids, n_ctx, arguments.config.context.n_batch, [](size_t done, size_t total) {
                  std::fprintf(stderr, "chunk %zu of %zu\n", done, total);
                }));
  return print({{"ctx", result.n_ctx},
                {"chunks", result.chunk_mean_nll.size()},
                {"tokens", result.n_tokens},
                {"scored", result.n_scored},
                {"mean_nll", result.mean_nll},
                {"ppl", std::exp(result.mean_nll)},
                {"chunk_mean_nll", result.chunk_mean_nll}});
}

}  // namespace minfer::programs
