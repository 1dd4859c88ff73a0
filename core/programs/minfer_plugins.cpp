// minfer-plugins: which plugins there are, which a configuration uses on this machine, and why one is not.
#include <boost/program_options.hpp>
#include <iostream>

#include "base/utf8.hpp"
#include "config/config.hpp"
#include "plugin/selection.hpp"
#include "programs/plugin_search.hpp"
#include "runtime/from_config.hpp"

namespace {

namespace po = boost::program_options;
using namespace minfer;
using namespace minfer::plugin;

constexpr int kOk = 0, kFailed = 1, kUsage = 2;

// A list that did not get out whole is a failure.
int written(int code) {
  if (std::cout.flush()) return code;
  std::cerr << "error: standard output cannot be written\n";
  return kFailed;
}

int failed(const Error& error) {
  std::cerr << "error: " << printable(error.text) << '\n';
  return kFailed;
}

struct Arguments {
  SearchPaths search = programs::default_search();
  std::string why;
  std::string config;
  bool check = false;
  bool help = false;
};

po::options_description describe_options(Arguments& arguments) {
  po::options_description options("minfer-plugins [options]: lists plugins without loading them\n\nOptions");
  auto add = options.add_options();
  add("plugin-dir", po::value<std::vector<std::string>>()->composing(), "search this folder first (may be repeated)");
  add("plugin", po::value<std::vector<std::string>>()->composing(), "a manifest or library (may be repeated; before folders)");
  add("why", po::value(&arguments.why), "load every plugin of this name and say how far it comes");
  add("config", po::value(&arguments.config), "open the backends that this configuration uses on this machine and say why not others");
  add("check", po::bool_switch(&arguments.check), "load every plugin that is used and say how far it comes");
  add("allow-unsafe-paths", po::bool_switch(&arguments.search.allow_unsafe_paths), "accept files that everyone may write");
  add("help,h", po::bool_switch(&arguments.help), "this text");
  return options;
}

// File names may hold anything.
std::string shown(const std::filesystem::path& path) { return one_line(path.string()); }

std::string state(const Candidate& candidate, const Record& record) {
  if (!candidate.shadowed_by.empty()) return "shadowed by " + shown(candidate.shadowed_by);
  return record.ok() ? std::string(stage_name(record.stage)) : "skipped, " + one_line(describe(record));
}

// "backend  cpu  1.2.0  ready" and below it where it lies.
void print(const Candidate& candidate, const Record& record) {
  const Manifest& m = candidate.manifest;
  if (m.name.empty())
    std::cout << "?        " << shown(candidate.path.filename()) << "  " << state(candidate, record) << '\n';
  else
    std::cout << kind_key(m.kind) << (m.kind == Kind::kBackend ? "  " : "     ") << m.name << "  " << m.version << "  "
              << state(candidate, record) << '\n';
  std::cout << "         " << shown(candidate.path) << "  (" << candidate.origin << ")\n";
  if (!record.ok() && !record.hint.empty()) std::cout << "         do: " << one_line(record.hint) << '\n';
}

int why(const Registry& registry, const std::string& name) {
  bool any = false, usable = false;
  for (const Candidate& candidate : registry.found().candidates) {
    if (!candidate.is_meant(Kind::kBackend, name) && !candidate.is_meant(Kind::kArchitecture, name)) continue;
    const Record record = registry.probe(candidate);
    print(candidate, record);
    any = true;
    usable = usable || (record.ok() && candidate.shadowed_by.empty());
  }
  if (!any) {
    NameRequest request = registry.name_request(Kind::kBackend, name, {});
    const NameRequest architectures = registry.name_request(Kind::kArchitecture, name, {});
    request.installed.insert(request.installed.end(), architectures.installed.begin(), architectures.installed.end());
    request.available.insert(request.available.end(), architectures.available.begin(), architectures.available.end());
    std::cerr << "error: " << printable(not_installed(request).text) << '\n';
  }
  return usable ? kOk : kFailed;
}

std::string indented(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) text.insert(at + 1, "     ");
  return text;
}

void print(const ConsideredBackend& backend) {
  std::cout << "  " << backend.request.name << ": ";
  switch (backend.verdict) {
    case ConsideredBackend::Verdict::kChosen:
      std::cout << "chosen";
      for (const auto& device : backend.opened->devices())
        std::cout << "\n     " << device->info().name << ": " << device->info().description;
      break;
    case ConsideredBackend::Verdict::kUnusable: std::cout << "not usable: " << indented(printable(backend.error->text)); break;
    case ConsideredBackend::Verdict::kLowerPriority: std::cout << "lower priority: a backend before it runs everything"; break;
  }
  std::cout << '\n';
}

// Those that automatic choice does not even try.
void print_passed_over(const Candidate& candidate) {
  const Manifest& m = candidate.manifest;
  const std::string name = m.name.empty() ? candidate.path.filename().string() : m.name;
  if ((!m.name.empty() && m.kind != Kind::kBackend) || !candidate.shadowed_by.empty()) return;
  if (!candidate.record.ok())
    std::cout << "  " << one_line(name) << ": not usable: " << one_line(describe(candidate.record))
              << "\n     do: " << one_line(candidate.record.hint) << '\n';
  else if (m.priority == 0)
    std::cout << "  " << name << ": only when it is named (priority 0)\n";
}

// What this machine makes of the configuration.
int choose(Registry& registry, const Config& config, const MachineFacts& machine) {
  const auto options = model_options(config);
  if (!options.ok()) return failed(options.error());
  std::cout << "machine: hostname " << machine.hostname << ", os " << machine.os << '\n';
  std::cout << "machines: " << (config.machine.empty() ? "no entry applies" : "the entry at " + config.machine + " applies") << '\n';
  const bool automatic = config.backends.empty();
  std::cout << "backends: " << (automatic ? "auto, by priority" : "as listed") << '\n';
  std::vector<BackendRequest> requests;
  for (const BackendSpec& spec : options->backends) requests.push_back(spec.request);
  if (automatic)
    for (const std::string& name : registry.automatic(Kind::kBackend)) requests.push_back({name, {}, {}, {}});

  std::string used;
  bool refused = false;
  for (const ConsideredBackend& backend : open_in_order(registry, std::move(requests), automatic)) {
    print(backend);
    if (backend.opened) used += (used.empty() ? "" : ", ") + backend.request.name;
    refused = refused || (backend.error && !automatic);
  }
  if (automatic)
    for (const Candidate& candidate : registry.found().candidates) print_passed_over(candidate);
  if (refused || used.empty()) {
    std::cerr << "error: " << (refused ? "a listed backend cannot be used" : "no backend can be used on this machine") << '\n';
    return kFailed;
  }
  std::cout << "used, best first: " << used << '\n';
  return kOk;
}

int list(const Registry& registry, bool check) {
  bool all_good = true;
  for (const Candidate& candidate : registry.found().candidates) {
    const Record record = check && candidate.shadowed_by.empty() ? registry.probe(candidate) : candidate.record;
    print(candidate, record);
    all_good = all_good && record.ok();
  }
  if (registry.found().candidates.empty()) {
    std::cout << "no plugins found\n";
    for (const auto& folder : registry.found().searched) std::cout << "  looked " << shown(folder) << '\n';
  }
  return check && !all_good ? kFailed : kOk;
}

int run(int argc, char** argv) {
  Arguments arguments;
  const po::options_description options = describe_options(arguments);
  po::variables_map values;
  try {
    const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(options).positional({}).style(style).run(), values);
    po::notify(values);
  } catch (const po::error& e) {
    std::cerr << "error: " << one_line(e.what()) << " (see minfer-plugins --help)\n";
    return kUsage;
  }
  if (arguments.help) {
    std::cout << options;
    return kOk;
  }
  const auto paths = [&](const char* key, std::vector<std::filesystem::path>& out) {
    if (values.count(key))
      for (const std::string& path : values[key].as<std::vector<std::string>>()) out.push_back(path);
  };
  Config config;
  const MachineFacts machine = this_machine();
  if (!arguments.config.empty()) {
    auto loaded = load_config(arguments.config, machine);
    if (!loaded.ok()) return failed(loaded.error());
    config = std::move(*loaded);
    arguments.search.dirs = config.plugins.dirs;
    arguments.search.files = config.plugins.files;
    arguments.search.allow_unsafe_paths |= config.plugins.allow_unsafe_paths;
  }
  // As in every program: the command line replaces the file's lists.
  if (values.count("plugin-dir")) arguments.search.dirs.clear();
  if (values.count("plugin")) arguments.search.files.clear();
  paths("plugin-dir", arguments.search.dirs);
  paths("plugin", arguments.search.files);

  Registry registry(discover(arguments.search), {});
  for (const std::string& notice : registry.found().notices) std::cerr << "notice: " << one_line(notice) << '\n';
  int code = kOk;
  if (!arguments.why.empty())
    code = why(registry, arguments.why);
  else if (arguments.config.empty())
    code = list(registry, arguments.check);
  const Status named = registry.check_named();
  if (!named.ok()) return failed(named.error());
  return arguments.config.empty() ? code : choose(registry, config, machine);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return written(run(argc, argv));
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return kFailed;
  }
}
