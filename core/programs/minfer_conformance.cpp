// minfer-conformance: judges a backend plugin against the scalar reference of core/conformance.
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>

#include "conformance/suite.hpp"
#include "plugin/registry.hpp"
#include "programs/cli.hpp"
#include "programs/plugin_search.hpp"

namespace {

using namespace minfer;
using namespace minfer::programs;
namespace cf = minfer::conformance;

constexpr std::string_view kIntro =
    "minfer-conformance [options] PLUGIN [FILTER]: runs a backend through the plugin interface and compares it with a scalar reference\n"
    "\n"
    "PLUGIN: the path of a library or manifest, or the name of a backend in the usual places. FILTER: a case of that name, or all cases\n"
    "whose name contains it ('*' stands for anything). A case that fails prints one line that repeats it. An operation that the backend\n"
    "does not support is counted, and is no failure. Exit code: 0 all passed, 1 something failed, 2 bad command line.\n";

std::vector<OptionGroup> option_groups() {
  using enum OptionKind;
  return {{"Options",
           {{"option", 'o', kRepeated, "KEY=VALUE", "", "option of the backend, e.g. threads=2 (may be repeated)"},
            {"full", 0, kFlag, "", "", "the long set of cases: minutes instead of seconds"},
            {"strict", 0, kFlag, "", "", "demand the same bits wherever minfer promises them, and the 8-bit contract of products"},
            {"seed", 0, kValue, "N", "", "seed of the data; default 42"},
            {"list", 0, kFlag, "", "", "print the names of the cases and run nothing"},
            {"verbose", 'v', kFlag, "", "", "print every case"},
            {"plugin-dir", 0, kRepeated, "DIR", "", "search this folder for plugins first (may be repeated)"},
            {"allow-unsafe-paths", 0, kFlag, "", "", "accept plugin files that everyone may write"},
            help_option()}}};
}

struct Arguments {
  std::string plugin;
  std::string filter;
  plugin::SearchPaths search = default_search();
  plugin::Options backend_options;
  cf::Options options;
  bool verbose = false;
};

Result<Arguments> read_arguments(const ParsedOptions& parsed) {
  Arguments out;
  const std::vector<std::string>& words = parsed.words();
  const bool list = parsed.has("list");
  if (words.size() > 2 || (words.empty() && !list)) return invalid("expects PLUGIN [FILTER] (see minfer-conformance --help)");
  if (!words.empty()) out.plugin = words[0];
  if (words.size() == 2) out.filter = words[1];
  for (const std::string& pair : parsed.values("option")) {
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) return invalid("--option: '{}' is not KEY=VALUE", pair);
    out.backend_options[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  for (const std::string& dir : parsed.values("plugin-dir")) out.search.dirs.push_back(dir);
  out.search.allow_unsafe_paths = parsed.has("allow-unsafe-paths");
  if (const std::string seed = parsed.value("seed"); parsed.has("seed")) {
    const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), out.options.seed);
    if (error != std::errc() || end != seed.data() + seed.size()) return invalid("--seed: '{}' is not a whole number", seed);
  }
  out.options.full = parsed.has("full");
  out.options.strict = parsed.has("strict");
  out.verbose = parsed.has("verbose");
  return out;
}

// The word PLUGIN as a path or a name; a path's name stands in its manifest.
Result<std::string> backend_name(const plugin::Discovery& found, const Arguments& arguments) {
  if (arguments.search.files.empty()) return arguments.plugin;
  const plugin::Candidate& candidate = found.candidates.at(0);
  if (!candidate.record.ok()) return make_error(candidate.record.code, "{}", plugin::describe(candidate.record));
  return candidate.manifest.name;
}

// A word as a shell takes it back.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The command that repeats a case.
std::string repeat(const Arguments& arguments, const std::string& name) {
  std::string out = "minfer-conformance " + quoted(arguments.plugin);
  for (const auto& dir : arguments.search.dirs) out += " --plugin-dir " + quoted(dir.string());
  for (const auto& [key, value] : arguments.backend_options) out += " -o " + quoted(key + "=" + value);
  if (arguments.options.strict) out += " --strict";
  return out + " '" + name + "' --seed " + std::to_string(arguments.options.seed);
}

// A backend that crashes or never comes back takes the program with it: the line that names its case is ready before the case runs.
char running_case[4096];
size_t running_case_bytes = 0;

void tell_running_case(int signal) {
  if (running_case_bytes > 0 && ::write(STDERR_FILENO, running_case, running_case_bytes) < 0) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void set_running_case(const std::string& command) {
  const std::string line = command.empty() ? "" : "ENDED IN " + command + "\n";
  running_case_bytes = line.copy(running_case, sizeof running_case);
}

void watch_for_crashes() {
  static char stack[65536];  // the usual one may be what overflowed
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  struct sigaction action = {};
  action.sa_handler = tell_running_case;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (const int signal : {SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

struct Tally {
  uint32_t passed = 0, failed = 0, unsupported = 0;
};

void print_summary(const std::vector<std::pair<std::string, Tally>>& tallies, const std::map<cf::ProductClass, uint32_t>& classes) {
  Tally sum;
  std::printf("%-12s %8s %8s %14s\n", "group", "passed", "failed", "not supported");
  for (const auto& [group, tally] : tallies) {
    std::printf("%-12s %8u %8u %14u\n", group.c_str(), tally.passed, tally.failed, tally.unsupported);
    sum.passed += tally.passed;
    sum.failed += tally.failed;
    sum.unsupported += tally.unsupported;
  }
  for (const auto& [found, count] : classes)
    std::printf("products that follow the %s reading: %u\n", cf::kProductClasses[static_cast<size_t>(found)], count);
  std::printf("%u passed, %u failed, %u not supported\n", sum.passed, sum.failed, sum.unsupported);
}

Result<bool> run_cases(const Arguments& arguments, const std::vector<cf::Case>& cases) {
  plugin::Registry registry(plugin::discover(arguments.search), {});
  for (const std::string& notice : registry.found().notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  MINFER_ASSIGN(const std::string name, backend_name(registry.found(), arguments));
  const plugin::BackendRequest request{name, arguments.backend_options, "the command line"};
  MINFER_ASSIGN(const auto backend, registry.open_backend(request));
  Device& device = *backend->devices()[0];
  std::printf("backend %s: device %s, %s\n", name.c_str(), device.info().name.c_str(), device.info().description.c_str());

  std::unique_ptr<plugin::OpenedBackend> second;
  const auto second_device = [&]() -> Result<Device*> {
    if (!second) {
      auto opened = registry.open_backend(request);
      if (!opened.ok()) return opened.error();
      second = std::move(*opened);
    }
    return second->devices()[0].get();
  };

  std::vector<std::pair<std::string, Tally>> tallies;
  std::map<cf::ProductClass, uint32_t> classes;
  bool all_good = true;
  watch_for_crashes();
  for (const cf::Case& c : cases) {
    const std::string group = c.name.substr(0, c.name.find('/'));
    if (tallies.empty() || tallies.back().first != group) tallies.push_back({group, {}});
    Tally& tally = tallies.back().second;
    cf::Context context{device, second_device, arguments.options, cf::Random(arguments.options.seed ^ cf::hash_name(c.name)), &classes};
    set_running_case(repeat(arguments, c.name));
    const Status status = c.run(context);
    set_running_case("");
    if (status.ok()) {
      ++tally.passed;
      if (arguments.verbose) std::printf("passed         %s\n", c.name.c_str());
    } else if (status.error().code == ErrorCode::kUnsupported) {
      ++tally.unsupported;
      if (arguments.verbose) std::printf("not supported  %s\n", c.name.c_str());
    } else {
      ++tally.failed;
      all_good = false;
      std::printf("FAILED %s: %s\n", repeat(arguments, c.name).c_str(), status.error().text.c_str());
    }
  }
  print_summary(tallies, classes);
  return all_good;
}

int run(const std::vector<std::string>& words) {
  const std::vector<OptionGroup> groups = option_groups();
  const auto parsed = parse_options(groups, words);
  if (!parsed.ok()) return fail(parsed.error(), kUsage);
  if (parsed->has("help")) return print(help_text(kIntro, groups));
  auto arguments = read_arguments(*parsed);
  if (!arguments.ok()) return fail(arguments.error(), kUsage);
  if (const std::string& word = arguments->plugin; word.find('/') != std::string::npos || word.find(".so") != std::string::npos)
    arguments->search.files.push_back(word);

  const std::vector<cf::Case> cases = cf::select(cf::all_cases(), arguments->filter, arguments->options.full);
  if (cases.empty()) return fail(invalid("no case matches '{}' (see --list)", arguments->filter), kUsage);
  if (parsed->has("list")) {
    std::string names;
    for (const cf::Case& c : cases) names += c.name + "\n";
    return print(names);
  }
  const auto good = run_cases(*arguments, cases);
  if (!good.ok()) return fail(good.error());
  return *good ? print("") : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was found stays found when a backend ends the program
  return run_program([&] { return run({argv + 1, argv + argc}); });
}
