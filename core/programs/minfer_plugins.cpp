// minfer-plugins: which plugins there are, which are used, and why one is not.
#include <boost/program_options.hpp>
#include <iostream>

#include "base/utf8.hpp"
#include "plugin/registry.hpp"
#include "programs/plugin_search.hpp"

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

struct Arguments {
  SearchPaths search = programs::default_search();
  std::string why;
  bool check = false;
  bool help = false;
};

po::options_description describe_options(Arguments& arguments) {
  po::options_description options("minfer-plugins [options]: lists plugins without loading them\n\nOptions");
  auto add = options.add_options();
  add("plugin-dir", po::value<std::vector<std::string>>()->composing(), "search this folder first (may be repeated)");
  add("plugin", po::value<std::vector<std::string>>()->composing(), "a manifest or library (may be repeated; before folders)");
  add("why", po::value(&arguments.why), "load every plugin of this name and say how far it comes");
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

// Whether a candidate is what the user means by the name, which may be that of a file that has no readable manifest.
bool is_meant(const Candidate& candidate, const std::string& name) {
  if (!candidate.manifest.name.empty()) return candidate.manifest.name == name;
  const std::string file = candidate.path.filename().string();
  return file.find("-" + name + ".") != std::string::npos || file.rfind(name + ".", 0) == 0;
}

int why(const Registry& registry, const std::string& name) {
  bool any = false, usable = false;
  std::vector<std::string> names;
  for (const Candidate& candidate : registry.found().candidates) {
    if (candidate.record.ok() && candidate.shadowed_by.empty()) names.push_back(candidate.manifest.name);
    if (!is_meant(candidate, name)) continue;
    const Record record = registry.probe(candidate);
    print(candidate, record);
    any = true;
    usable = usable || (record.ok() && candidate.shadowed_by.empty());
  }
  if (!any) std::cerr << "error: " << printable(not_installed({Kind::kBackend, name, {}, names, registry.found().searched}).text) << '\n';
  return usable ? kOk : kFailed;
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
  paths("plugin-dir", arguments.search.dirs);
  paths("plugin", arguments.search.files);

  const Registry registry(discover(arguments.search), {});
  for (const std::string& notice : registry.found().notices) std::cerr << "notice: " << one_line(notice) << '\n';
  return arguments.why.empty() ? list(registry, arguments.check) : why(registry, arguments.why);
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
