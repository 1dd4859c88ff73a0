#include "programs/cli.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/file_mapping.hpp"
#include "base/utf8.hpp"
#include "programs/progress_line.hpp"

namespace minfer::programs {
namespace {

namespace po = boost::program_options;

const char* const kWords = "words";  // where Boost puts positional words

po::options_description describe(const std::vector<OptionGroup>& groups) {
  po::options_description description;
  for (const OptionGroup& group : groups) {
    for (const Option& option : group.options) {
      std::string names = option.name;
      if (option.letter) names += std::string(",") + option.letter;
      if (option.kind == OptionKind::kFlag)
        description.add_options()(names.c_str(), "");
      else if (option.kind == OptionKind::kValue)
        description.add_options()(names.c_str(), po::value<std::vector<std::string>>(), "");
      else
        description.add_options()(names.c_str(), po::value<std::vector<std::string>>()->composing(), "");
    }
  }
  return description;
}

// "a, B,c" -> a b c: names of backends, in any case.
std::vector<std::string> split_names(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    for (const std::string& item : split_list(text)) {
      std::string& name = names.emplace_back();
      for (const char c : item)
        if (c != ' ') name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return names;
}

std::string option_column(const Option& option) {
  std::string column = option.letter ? std::string("  -") + option.letter + ", --" + option.name : "      --" + option.name;
  if (option.kind != OptionKind::kFlag) column += " " + option.value;
  return column;
}

// Help lines, wrapped at 100 columns.
void append_wrapped(std::string& out, std::string column, const std::string& help) {
  constexpr size_t kIndent = 33, kWidth = 100;
  if (column.size() + 2 > kIndent) {
    out += column + "\n";
    column.clear();
  }
  column.resize(kIndent, ' ');
  std::string line = column;
  for (size_t begin = 0; begin < help.size();) {
    const size_t end = std::min(help.find(' ', begin), help.size());
    if (line.size() + end - begin > kWidth && line.size() > kIndent) {
      out += line + "\n";
      line.assign(kIndent, ' ');
    }
    if (line.size() > kIndent) line += ' ';
    line.append(help, begin, end - begin);
    begin = end + 1;
  }
  out += line + "\n";
}

}  // namespace

void print_notice(std::string_view text) {
  erase_progress_line();
  std::fprintf(stderr, "%s\n", printable(text).c_str());
}

int fail(const Error& error, int code) {
  print_notice("error: " + error.text);
  return code;
}

int run_program(const std::function<int()>& body) {
  // A file opened in the place of a stream that was closed would be read as input, or written into.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0) return kFailed;
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is a failed write, which is reported
  survive_shortened_files();
  try {
    return body();
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);  // the stream of errors needs no memory
  } catch (const std::exception& e) {
    return fail(internal_error("{}", e.what()));
  }
  return kFailed;
}

int print(std::string_view text) {
  // Once a write has failed, a later flush may succeed: only the stream remembers.
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) == 0 && written) return kDone;
  return fail(io_error("standard output: {}", std::strerror(errno)));
}

std::string ParsedOptions::value(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? std::string() : found->second.back();
}

std::vector<std::string> ParsedOptions::values(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

Result<ParsedOptions> parse_options(const std::vector<OptionGroup>& groups, const std::vector<std::string>& arguments) {
  ParsedOptions parsed;
  try {
    const po::options_description visible = describe(groups);
    po::options_description all;
    all.add(visible).add_options()(kWords, po::value<std::vector<std::string>>(), "");
    po::positional_options_description positional;
    positional.add(kWords, -1);
    const auto style =
        (po::command_line_style::unix_style | po::command_line_style::allow_long_disguise) & ~po::command_line_style::allow_guessing;
    const po::parsed_options found = po::command_line_parser(arguments).options(all).positional(positional).style(style).run();
    for (const po::option& option : found.options) {
      if (option.string_key == kWords && option.position_key < 0) return invalid("unrecognised option '--{}'", kWords);
      if (option.position_key >= 0) {
        parsed.words_.insert(parsed.words_.end(), option.value.begin(), option.value.end());
        continue;
      }
      auto& values = parsed.values_[option.string_key];
      values.insert(values.end(), option.value.begin(), option.value.end());
    }
  } catch (const po::error& e) {
    return invalid("{}", e.what());
  }
  for (const OptionGroup& group : groups)
    for (const Option& option : group.options)
      if (option.kind == OptionKind::kValue && parsed.values(option.name).size() > 1)
        return invalid("option '--{}' is given more than once", option.name);
  return parsed;
}

Status apply_options(const std::vector<OptionGroup>& groups, const ParsedOptions& parsed, Config& config) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return io_error("current folder: {}", error.message());
  for (const OptionGroup& group : groups) {
    for (const Option& option : group.options) {
      if (option.key.empty() || !parsed.has(option.name)) continue;
      const std::string origin = "--" + option.name;
      if (option.kind == OptionKind::kFlag) {
        MINFER_TRY(apply_override(config, option.key, option.value, origin, here));
      } else if (option.kind == OptionKind::kValue) {
        MINFER_TRY(apply_override(config, option.key, parsed.value(option.name), origin, here));
      } else {
        const std::vector<std::string> values = parsed.values(option.name);
        const bool commas = option.kind == OptionKind::kCommaList;
        MINFER_TRY(apply_override_list(config, option.key, commas ? split_names(values) : values, origin, here));
      }
    }
  }
  return {};
}

Result<Config> read_configuration(const std::vector<OptionGroup>& groups, const ParsedOptions& parsed, bool* usage) {
  *usage = false;
  Config config;
  if (parsed.has("config")) {
    MINFER_ASSIGN(config, load_config(parsed.value("config"), this_machine()));
  }
  *usage = true;
  MINFER_TRY(apply_options(groups, parsed, config));
  if (config.model.text.empty() && !parsed.has("config")) return invalid("no model: give -m MODEL or --config FILE");
  *usage = false;
  return config;
}

std::string help_text(std::string_view intro, const std::vector<OptionGroup>& groups) {
  std::string out(intro);
  for (const OptionGroup& group : groups) {
    out += "\n" + group.title + ":\n";
    for (const Option& option : group.options) {
      std::string help = option.help;
      if (!option.key.empty()) {
        help += " [" + option.key;
        if (option.kind == OptionKind::kFlag) help += ": " + option.value;
        help += "]";
      }
      append_wrapped(out, option_column(option), help);
    }
  }
  return out;
}

std::string version_text(std::string_view program) { return text("{} {}\n", program, MINFER_VERSION); }

Result<uint32_t> number_option(const ParsedOptions& parsed, std::string_view name, uint32_t fallback, uint32_t min, uint32_t max) {
  if (!parsed.has(name)) return fallback;
  return whole_number(parsed.value(name), name, min, max);
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> items(1);
  for (const char c : list) {
    if (c == ',')
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

Result<uint32_t> whole_number(std::string_view text, std::string_view name, uint32_t min, uint32_t max) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < min || number > max)
    return invalid("--{}: '{}' is not a whole number from {} to {}", name, text, min, max);
  return number;
}

OptionGroup model_options_group() {
  return {"Model",
          {{"model", 'm', OptionKind::kValue, "MODEL", "model", "GGUF file, or the name of one in the model directory"},
           {"config", 0, OptionKind::kValue, "FILE", "", "read settings from a YAML file; options win over it"}}};
}

OptionGroup backend_options_group() {
  using enum OptionKind;
  return {
      "Backends",
      {{"backend", 0, kCommaList, "NAME", "backends", "use these backends, best first: a list, or repeated; default: what fits"},
       {"backend-option", 0, kRepeated, "NAME.KEY=VALUE", "", "an option of one backend [backends: {name: NAME, KEY: VALUE}]; repeatable"},
       {"threads", 't', kValue, "N", "", "CPU threads, for every backend that has the option [backends: {threads: N}]; default auto"},
       {"gpu-layers", 0, kValue, "N", "",
        "layers on the first device that is not the host, all, or auto: what fits [backends: {gpu_layers: N}]; default auto"},
       {"plugin", 0, kRepeated, "FILE", "plugins.files", "a plugin's manifest or library; repeatable"},
       {"plugin-dir", 0, kRepeated, "DIR", "plugins.dirs", "a folder with plugins; repeatable"}}};
}

Option isa_option() {
  return {"isa", 0, OptionKind::kValue, "NAME", "", "instruction set, for every backend that has the option; default auto"};
}

Option kv_format_option() {
  return {"kv-format", 0, OptionKind::kValue, "TYPE", "context.kv_format", "auto, f32, f16 or q8_0; default auto: f16"};
}

Option help_option() { return {"help", 'h', OptionKind::kFlag, "", "", "this text"}; }

}  // namespace minfer::programs
