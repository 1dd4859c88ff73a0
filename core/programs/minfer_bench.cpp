// minfer-bench: tokens per second of prompt processing (pp) and generation (tg) on synthetic tokens.
#include <algorithm>
#include <charconv>
#include <optional>
#include <thread>

#include "programs/bench_table.hpp"
#include "programs/loading.hpp"
#include "runtime/bench.hpp"
#include "runtime/generate.hpp"
#include "runtime/step_work.hpp"

namespace {

using namespace minfer;
using namespace minfer::programs;

constexpr std::string_view kIntro =
    "minfer-bench [options]: tokens per second of prompt processing (pp) and generation (tg)\n"
    "\n"
    "ppN: one prefill of N tokens. tgN: N steps of one token with its logits. With a depth both start behind so many tokens, which are\n"
    "not timed; a generation always has one. The result is the mean and the sample standard deviation over the repetitions. Numbers of\n"
    "tokens, depths and threads may be lists, as in -p 512,2048 -t 1,2,4: a row for each of their combinations.\n";

std::vector<OptionGroup> option_groups() {
  using enum OptionKind;
  OptionGroup test{"Test",
                   {{"n-prompt", 'p', kValue, "N,...", "", "prompt tokens; 0: no pp test; default 512"},
                    {"n-gen", 'n', kValue, "N,...", "", "generated tokens; 0: no tg test; default 128"},
                    {"depth", 'd', kValue, "N,...", "", "tokens in the context before; default 0"},
                    {"repetitions", 'r', kValue, "N", "", "timed repetitions; default 5"},
                    {"warmup", 0, kValue, "MS", "",
                     "untimed repetitions before: one (of a single step: two), and until so much time has passed; default 2000"},
                    {"output", 'o', kValue, "FORMAT", "", "md, csv or json; default md"},
                    {"probe", 0, kFlag, "", "", "also measure what this machine can do at best, and give speeds as parts of it"},
                    {"clock", 0, kFlag, "", "", "print the clock of one core in GHz, measured in 50 ms, and end"},
                    {"n-ctx", 0, kValue, "N", "context.n_ctx", "context size; default: what the tests need"},
                    {"n-batch", 0, kValue, "N", "context.n_batch", "prompt tokens per step; default 512"},
                    kv_format_option(),
                    help_option()}};
  OptionGroup backends = backend_options_group();
  for (Option& option : backends.options)
    if (option.name == "threads") option.value = "N,...";
  backends.options.push_back(isa_option());
  return {model_options_group(), std::move(test), std::move(backends)};
}

struct BenchArguments {
  Config config;
  std::vector<BackendOverrides> backends;  // for each number of threads
  std::vector<BenchTest> tests;
  BenchOptions options;
  BenchFormat format = BenchFormat::kMarkdown;
  bool probe = false;
};

std::string test_name(const BenchTest& test) {
  std::string name = test.n_prompt > 0 ? text("pp{}", test.n_prompt) : text("tg{}", test.n_gen);
  return test.depth > 0 ? name + text(" @ d{}", test.depth) : name;
}

Result<BenchFormat> format_option(const ParsedOptions& parsed) {
  const std::string name = parsed.has("output") ? parsed.value("output") : "md";
  if (name == "md") return BenchFormat::kMarkdown;
  if (name == "csv") return BenchFormat::kCsv;
  if (name == "json") return BenchFormat::kJson;
  return invalid("-o: '{}' is none of md, csv, json", name);
}

// The tokens of -p, -n or -d.
Result<std::vector<uint32_t>> token_counts(const ParsedOptions& parsed, std::string_view name, uint32_t fallback) {
  if (!parsed.has(name)) return std::vector<uint32_t>{fallback};
  std::vector<uint32_t> numbers;
  for (const std::string& item : split_list(parsed.value(name))) {
    MINFER_ASSIGN(const uint32_t number, whole_number(item, name, 0, 1 << 24));
    numbers.push_back(number);
  }
  return numbers;
}

Result<BenchArguments> read_numbers(const ParsedOptions& parsed) {
  BenchArguments bench;
  MINFER_ASSIGN(const std::vector<uint32_t> prompts, token_counts(parsed, "n-prompt", 512));
  MINFER_ASSIGN(const std::vector<uint32_t> generations, token_counts(parsed, "n-gen", 128));
  MINFER_ASSIGN(const std::vector<uint32_t> depths, token_counts(parsed, "depth", 0));
  MINFER_ASSIGN(bench.options.repetitions, number_option(parsed, "repetitions", 5, 1, 1 << 20));
  MINFER_ASSIGN(const uint32_t warmup, number_option(parsed, "warmup", 2000, 0, 1 << 30));
  bench.options.warmup_s = warmup / 1000.0;
  for (const uint32_t depth : depths) {
    for (const uint32_t n : prompts)
      if (n > 0) bench.tests.push_back({n, 0, depth});
    for (const uint32_t n : generations)
      if (n > 0) bench.tests.push_back({0, n, depth});
  }
  if (bench.tests.empty()) return invalid("-p 0 and -n 0: there is nothing to measure");
  MINFER_ASSIGN(bench.format, format_option(parsed));
  bench.probe = parsed.has("probe");
  if (!parsed.words().empty()) return invalid("'{}' is no option", parsed.words().front());
  for (const std::string& threads : split_list(parsed.value("threads"))) {
    MINFER_ASSIGN(BackendOverrides backends, backend_overrides(parsed, parsed.has("threads") ? std::optional(threads) : std::nullopt));
    bench.backends.push_back(std::move(backends));
  }
  return bench;
}

// For the table: what was asked for. "auto" is left to the backend, which knows what the machine allows; its number stands in the notice
// of the device.
std::string asked_threads(const Config& config, const BackendOverrides& backends) {
  std::string asked = "auto";
  for (const BackendChoice& choice : config.backends)
    for (const yaml::Node& option : choice.options.children)
      if (option.key == "threads") asked = option.text;
  for (const auto& [name, options] : backends.by_name)
    if (const auto found = options.find("threads"); found != options.end()) asked = found->second;
  if (const auto found = backends.offered.find("threads"); found != backends.offered.end()) asked = found->second;
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

// The threads that are measured and counted: as many as were asked for; those of the machine where the backend was left the choice.
unsigned threads_to_probe(const std::string& asked) {
  unsigned threads = 0;
  const auto [end, error] = std::from_chars(asked.data(), asked.data() + asked.size(), threads);
  return error == std::errc() && end == asked.data() + asked.size() && threads > 0 ? threads : std::thread::hardware_concurrency();
}

// The work of all steps of one repetition.
Result<StepWork> work_of(const Session& session, const BenchTest& test, uint32_t n_batch) {
  StepWork total;
  const uint32_t n = test.n_prompt + test.n_gen;
  const uint32_t step = test.n_prompt > 0 ? n_batch : 1;
  const uint32_t depth = positions_of(test) - n;
  for (uint32_t done = 0; done < n; done += step) {
    const uint32_t n_tokens = std::min(step, n - done);
    const uint32_t n_out = test.n_gen > 0 || done + n_tokens == n ? 1 : 0;
    MINFER_ASSIGN(const StepWork work, step_work(session, n_tokens, n_out, depth + done));
    total.weight_bytes += work.weight_bytes;
    total.kv_bytes += work.kv_bytes;
    for (const auto& [type, count] : work.macs) total.macs[type] += count;
  }
  return total;
}

Result<Achieved> achieved(const Session& session, const BenchTest& test, uint32_t n_batch, const MachineCeilings& ceilings,
                          const std::vector<double>& samples) {
  MINFER_ASSIGN(const StepWork work, work_of(session, test, n_batch));
  const double seconds = (test.n_prompt + test.n_gen) / mean_deviation(samples).mean;
  Achieved is;
  is.gb_s_best = ceilings.read_gb_s;
  is.clock_ghz = ceilings.clock_ghz;
  is.gb_s = static_cast<double>(work.weight_bytes + work.kv_bytes) / seconds * 1e-9;
  if (ceilings.clock_ghz > 0)
    is.macs_per_cycle = static_cast<double>(work.total_macs()) / (seconds * ceilings.clock_ghz * 1e9 * ceilings.threads);
  is.macs_per_cycle_bound = integer_bound(work, ceilings);
  return is;
}

// The rows of one number of threads. A backend has its threads from its opening on, so the model is loaded for each.
Status measure(const BenchArguments& bench, const BackendOverrides& backends, BenchTable& table) {
  MINFER_ASSIGN(const std::filesystem::path path, find_model(bench.config));
  MINFER_ASSIGN(const Loaded loaded, load_model(bench.config, path, backends, print_notice));
  const Model& model = *loaded.model;
  MINFER_ASSIGN(const uint32_t n_ctx, context_for(bench, model.info().n_ctx_train));
  MINFER_ASSIGN(const auto session, Session::create(model.engine(), session_params(bench.config, n_ctx)));
  table.model = model.general_name().empty() ? path.stem().string() : std::string(model.general_name());
  table.bytes = model.weight_bytes();
  table.parameters = model.n_parameters();
  table.backend.clear();
  for (const Device* device : model.engine().devices()) table.backend += (table.backend.empty() ? "" : "+") + device->info().name;
  const std::string threads = asked_threads(bench.config, backends);
  std::optional<MachineCeilings> ceilings;
  if (bench.probe) {
    print_notice("measuring the machine");
    ceilings = measure_ceilings(threads_to_probe(threads));
    table.ceilings.push_back(*ceilings);
  }

  BenchOptions options = bench.options;
  options.n_batch = bench.config.context.n_batch;
  for (const BenchTest& test : bench.tests) {
    print_notice(text("{}: {} repetitions", test_name(test), options.repetitions));
    BenchRow row;
    row.threads = threads;
    row.test = test_name(test);
    MINFER_ASSIGN(row.samples, minfer::bench(*session, test, options));
    if (ceilings) {
      MINFER_ASSIGN(row.achieved, achieved(*session, test, options.n_batch, *ceilings, row.samples));
    }
    table.rows.push_back(std::move(row));
  }
  return {};
}

int run(const std::vector<std::string>& arguments) {
  const std::vector<OptionGroup> groups = option_groups();
  const auto parsed = parse_options(groups, arguments);
  if (!parsed.ok()) return fail(parsed.error(), kUsage);
  if (parsed->has("help")) return print(help_text(kIntro, groups));
  if (parsed->has("clock")) return print(text("{:.4f}\n", measure_clock_ghz()));
  auto bench = read_numbers(*parsed);
  if (!bench.ok()) return fail(bench.error(), kUsage);
  bool usage = false;
  auto config = read_configuration(groups, *parsed, &usage);
  if (!config.ok()) return fail(config.error(), usage ? kUsage : kFailed);
  bench->config = std::move(*config);
  BenchTable table;
  for (const BackendOverrides& backends : bench->backends)
    if (const Status status = measure(*bench, backends, table); !status.ok()) return fail(status.error());
  return print(print_table(table, bench->format));
}

}  // namespace

int main(int argc, char** argv) {
  return run_program([&] { return run({argv + 1, argv + argc}); });
}
