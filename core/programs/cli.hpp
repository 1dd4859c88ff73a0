// Command lines of all programs: options as tables, their parsing, their help, and how a program ends.
// Knows which options set which key of the configuration; knows no model and no backend.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace minfer::programs {

// How a program ends.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;        // bad command line
inline constexpr int kSignalled = 128;  // plus the signal's number: 130 after Ctrl-C, 143 after SIGTERM

// A line (or lines) for people on standard error. Names of files and models may hold anything: what a terminal would obey is escaped.
void print_notice(std::string_view text);

// Prints "error: ..." and gives the code back.
int fail(const Error& error, int code = kFailed);

// Writes text to standard output and gives back how the program ends: a full disk or a closed output is a failure.
int print(std::string_view text);

enum class OptionKind { kFlag, kValue, kRepeated, kCommaList };  // kCommaList: repeated, and each may be a list "a,b"

struct Option {
  std::string name;  // "temp"
  char letter = 0;   // short form
  OptionKind kind = OptionKind::kValue;
  std::string value;  // "T"; of a flag with a key: the value it stands for
  std::string key;    // of the configuration, which it sets; may be empty
  std::string help;   // the default in words at its end
};

// The whole of a main function: sets up what concerns the process (a reader that has gone ends it without a word, a model file that is
// shortened does not end it) and turns what was thrown into one line. Memory may run out anywhere.
int run_program(const std::function<int()>& body);

struct OptionGroup {
  std::string title;
  std::vector<Option> options;
};

class ParsedOptions {
 public:
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  // The value of an option that takes one; empty if it was not given.
  std::string value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;
  const std::vector<std::string>& words() const { return words_; }

 private:
  friend Result<ParsedOptions> parse_options(const std::vector<OptionGroup>&, const std::vector<std::string>&);
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> words_;
};

// Long names with one or two dashes, in full; "--" ends the options; other words are positional.
Result<ParsedOptions> parse_options(const std::vector<OptionGroup>& groups, const std::vector<std::string>& arguments);

// Sets the keys of the options that were given. Relative paths start at the current folder.
Status apply_options(const std::vector<OptionGroup>& groups, const ParsedOptions& parsed, Config& config);

// The file of --config, or the defaults, with the options over them. *usage: whether the command line is to blame for an error.
Result<Config> read_configuration(const std::vector<OptionGroup>& groups, const ParsedOptions& parsed, bool* usage);

std::string help_text(std::string_view intro, const std::vector<OptionGroup>& groups);
std::string version_text(std::string_view program);

// The value of an option that is no key of the configuration: a whole number, `fallback` if the option was not given.
Result<uint32_t> number_option(const ParsedOptions& parsed, std::string_view name, uint32_t fallback, uint32_t min, uint32_t max);

// `text`, which option `name` was given, as such a number.
Result<uint32_t> whole_number(std::string_view text, std::string_view name, uint32_t min, uint32_t max);
// "a,b" -> a b; an empty item stays one.
std::vector<std::string> split_list(std::string_view list);

// Options that every program with a model has.
OptionGroup model_options_group();
OptionGroup backend_options_group();
Option isa_option();
Option kv_format_option();
Option help_option();

}  // namespace minfer::programs
