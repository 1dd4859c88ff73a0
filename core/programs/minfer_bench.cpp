// minfer-bench: tokens per second of prompt processing (pp) and generation (tg) on synthetic tokens.
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "programs/loading.hpp"
#include "runtime/bench.hpp"
#include "runtime/generate.hpp"

namespace {

using namespace minfer;
using namespace minfer::programs;

constexpr std::string_view kIntro =
    "minfer-bench [options]: tokens per second of prompt processing (pp) and generation (tg)\n"
    "\n"
    "ppN: one prefill of N tokens. tgN: N greedy steps, one token each. With a depth both start behind so many tokens, which are\n"
    "not timed; a generation always has one. The result is the mean and the sample standard deviation over the repetitions.\n";

std::vector<OptionGroup> option_groups() {
  using enum OptionKind;
  OptionGroup test{"Test",
                   {{"n-prompt", 'p', kValue, "N", "", "prompt tokens; 0: no pp test; default 512"},
                    {"n-gen", 'n', kValue, "N", "", "generated tokens; 0: no tg test; default 128"},
                    {"depth", 'd', kValue, "N", "", "tokens in the context before; default 0"},
                    {"repetitions", 'r', kValue, "N", "", "timed repetitions; default 5"},
                    {"warmup", 0, kValue, "MS", "", "untimed repetitions before: one, and until so much time has passed; default 2000"},
                    {"output", 'o', kValue, "FORMAT", "", "md, csv or json; default md"},
                    {"n-ctx", 0, kValue, "N", "context.n_ctx", "context size; default: what the tests need"},
                    {"n-batch", 0, kValue, "N", "context.n_batch", "prompt tokens per step; default 512"},
                    kv_format_option(),
                    help_option()}};
  OptionGroup backends = backend_options_group();
  backends.options.push_back(isa_option());
  return {model_options_group(), std::move(test), std::move(backends)};
}

struct Row {
  std::string test;
  std::vector<double> samples;
};

struct About {
  std::string model;
  uint64_t bytes = 0;
  uint64_t parameters = 0;
  std::string backend;
  std::string threads;  // a number or "auto"
};

std::string test_name(const BenchTest& test) {
  std::string name = test.n_prompt > 0 ? text("pp{}", test.n_prompt) : text("tg{}", test.n_gen);
  return test.depth > 0 ? name + text(" @ d{}", test.depth) : name;
}

std::string quoted(const std::string& field) {
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string as_md(const About& about, const std::vector<Row>& rows) {
  std::string out = "| model | size | params | backend | threads | test | t/s |\n| --- | ---: | ---: | --- | ---: | --- | ---: |\n";
  for (const Row& row : rows) {
    const MeanDeviation ts = mean_deviation(row.samples);
    out += text("| {} | {:.2f} GiB | {:.2f} B | {} | {} | {} | {:.2f} ± {:.2f} |\n", about.model,
                static_cast<double>(about.bytes) / (1024.0 * 1024 * 1024), static_cast<double>(about.parameters) / 1e9, about.backend,
                about.threads, row.test, ts.mean, ts.deviation);
  }
  return out;
}

std::string as_csv(const About& about, const std::vector<Row>& rows) {
  std::string out = "\"model\",\"size\",\"params\",\"backend\",\"threads\",\"test\",\"ts_mean\",\"ts_stddev\"\n";
  for (const Row& row : rows) {
    const MeanDeviation ts = mean_deviation(row.samples);
    out += text("{},\"{}\",\"{}\",{},{},{},\"{:.6f}\",\"{:.6f}\"\n", quoted(about.model), about.bytes, about.parameters,
                quoted(about.backend), quoted(about.threads), quoted(row.test), ts.mean, ts.deviation);
  }
  return out;
}

nlohmann::ordered_json number_or_text(const std::string& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? nlohmann::ordered_json(number) : nlohmann::ordered_json(text);
}

std::string as_json(const About& about, const std::vector<Row>& rows) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const Row& row : rows) {
    const MeanDeviation ts = mean_deviation(row.samples);
    out.push_back({{"model", about.model},
                   {"size", about.bytes},
                   {"params", about.parameters},
                   {"backend", about.backend},
                   {"threads", number_or_text(about.threads)},
                   {"test", row.test},
                   {"ts_mean", ts.mean},
                   {"ts_stddev", ts.deviation},
                   {"samples_ts", row.samples}});
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct BenchArguments {
  Config config;
  BackendOverrides backends;
  std::vector<BenchTest> tests;
  BenchOptions options;
  std::string format = "md";
};

Result<BenchArguments> read_numbers(const ParsedOptions& parsed) {
  constexpr uint32_t kMax = 1 << 24;
  BenchArguments bench;
  MINFER_ASSIGN(const uint32_t n_prompt, number_option(parsed, "n-prompt", 512, 0, kMax));
  MINFER_ASSIGN(const uint32_t n_gen, number_option(parsed, "n-gen", 128, 0, kMax));
  MINFER_ASSIGN(const uint32_t depth, number_option(parsed, "depth", 0, 0, kMax));
  MINFER_ASSIGN(bench.options.repetitions, number_option(parsed, "repetitions", 5, 1, 1 << 20));
  MINFER_ASSIGN(const uint32_t warmup, number_option(parsed, "warmup", 2000, 0, 1 << 30));
  bench.options.warmup_s = warmup / 1000.0;
  if (n_prompt == 0 && n_gen == 0) return invalid("-p 0 and -n 0: there is nothing to measure");
  if (n_prompt > 0) bench.tests.push_back({n_prompt, 0, depth});
  if (n_gen > 0) bench.tests.push_back({0, n_gen, depth});
  if (parsed.has("output")) bench.format = parsed.value("output");
  if (bench.format != "md" && bench.format != "csv" && bench.format != "json")
    return invalid("-o: '{}' is none of md, csv, json", bench.format);
  if (!parsed.words().empty()) return invalid("'{}' is no option", parsed.words().front());
  MINFER_ASSIGN(bench.backends, backend_overrides(parsed));
  return bench;
}

// For the table: what was asked for. "auto" is left to the backend, which knows what the machine allows; its number stands in the notice
// of the device.
std::string asked_threads(const BenchArguments& bench) {
  std::string asked = "auto";
  for (const BackendChoice& choice : bench.config.backends)
    for (const yaml::Node& option : choice.options.children)
      if (option.key == "threads") asked = option.text;
  for (const auto& [name, options] : bench.backends.by_name)
    if (const auto found = options.find("threads"); found != options.end()) asked = found->second;
  if (const auto found = bench.backends.offered.find("threads"); found != bench.backends.offered.end()) asked = found->second;
  return asked;
}

Result<uint32_t> context_for(const BenchArguments& bench, uint32_t n_ctx_train) {
  uint32_t needed = 0, sum = 16;
  for (const BenchTest& test : bench.tests) {
    needed = std::max(needed, positions_of(test));
    sum += positions_of(test);
  }
  if (needed > n_ctx_train) return invalid("the tests need {} positions, the model's context is {}", needed, n_ctx_train);
  const std::optional<uint32_t> limit = bench.config.context.n_ctx;
  if (limit && needed > *limit) return invalid("the tests need {} positions, n_ctx is {}", needed, *limit);
  return std::min(limit.value_or(sum), n_ctx_train);
}

Result<std::string> measure(const BenchArguments& bench) {
  MINFER_ASSIGN(const std::filesystem::path path, find_model(bench.config));
  MINFER_ASSIGN(const Loaded loaded, load_model(bench.config, path, bench.backends, print_notice));
  const Model& model = *loaded.model;
  MINFER_ASSIGN(const uint32_t n_ctx, context_for(bench, model.info().n_ctx_train));
  MINFER_ASSIGN(const auto session, Session::create(model.engine(), session_params(bench.config, n_ctx)));
  About about;
  about.model = model.general_name().empty() ? path.stem().string() : std::string(model.general_name());
  about.bytes = model.weight_bytes();
  about.parameters = model.n_parameters();
  for (const Device* device : model.engine().devices()) about.backend += (about.backend.empty() ? "" : "+") + device->info().name;
  about.threads = asked_threads(bench);

  BenchOptions options = bench.options;
  options.n_batch = bench.config.context.n_batch;
  std::vector<Row> rows;
  for (const BenchTest& test : bench.tests) {
    print_notice(text("{}: {} repetitions", test_name(test), options.repetitions));
    MINFER_ASSIGN(std::vector<double> samples, minfer::bench(*session, test, options));
    rows.push_back({test_name(test), std::move(samples)});
  }
  return bench.format == "md" ? as_md(about, rows) : bench.format == "csv" ? as_csv(about, rows) : as_json(about, rows);
}

int run(const std::vector<std::string>& arguments) {
  const std::vector<OptionGroup> groups = option_groups();
  const auto parsed = parse_options(groups, arguments);
  if (!parsed.ok()) return fail(parsed.error(), kUsage);
  if (parsed->has("help")) return print(help_text(kIntro, groups));
  auto bench = read_numbers(*parsed);
  if (!bench.ok()) return fail(bench.error(), kUsage);
  bool usage = false;
  auto config = read_configuration(groups, *parsed, &usage);
  if (!config.ok()) return fail(config.error(), usage ? kUsage : kFailed);
  bench->config = std::move(*config);
  const auto table = measure(*bench);
  if (!table.ok()) return fail(table.error());
  return print(*table);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program([&] { return run({argv + 1, argv + argc}); });
}
