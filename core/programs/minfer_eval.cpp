// minfer-eval: a model's tokenizer, logits, perplexity and chat template, one command each, in formats for scripts.
#include <cstdio>

#include "programs/eval_commands.hpp"

namespace {

using namespace minfer;
using namespace minfer::programs;

struct Command {
  std::string_view name;
  std::string_view what;
  std::vector<Option> options;
  std::vector<std::string> required;
  Status (*run)(const EvalArguments&);
};

std::vector<Command> commands() {
  using enum OptionKind;
  return {
      {"tokenize",
       "a JSON line {\"text\": ...} or {\"hex\": ...} in, {\"ids\": [...]} out",
       {{"bos", 0, kFlag, "", "", "put BOS in front where the model asks for it"},
        {"special", 0, kFlag, "", "", "control tokens in the text count as such"}},
       {},
       eval_tokenize},
      {"detokenize",
       "a JSON line {\"ids\": [...]} in, {\"hex\": ..., \"text\": ...} out; no text if it is not UTF-8",
       {},
       {},
       eval_detokenize},
      {"render",
       "{\"messages\": [...], \"tools\": [...], \"add_generation_prompt\": true} on standard input, the text of the chat template out",
       {{"chat-template", 0, kValue, "NAME|FILE", "prompt.template", "another template than the model's"}},
       {},
       eval_render},
      {"logits",
       "{\"n_vocab\": ..., \"rows\": [{\"pos\", \"logsumexp\", \"top\": [[id, logit], ...]}]} of a token sequence",
       {{"ids", 0, kValue, "1,2,3", "", "the tokens"},
        {"last", 0, kValue, "N", "", "rows of the last N positions; default 1"},
        {"top", 0, kValue, "K", "", "the K largest logits of each row; default 10"},
        {"batch", 0, kValue, "N", "", "tokens per step; default 512"},
        {"raw", 0, kValue, "FILE", "", "all logits of the rows as 32-bit floats, little-endian"}},
       {"ids"},
       eval_logits},
      {"perplexity",
       "{\"ctx\", \"chunks\", \"tokens\", \"scored\", \"mean_nll\", \"ppl\", \"chunk_mean_nll\"} of a text",
       {{"file", 'f', kValue, "FILE", "", "the text"},
        {"ctx", 0, kValue, "N", "", "tokens of a chunk; the second half is scored; default 512"}},
       {"file"},
       eval_perplexity},
  };
}

std::string overview() {
  std::string text = "minfer-eval COMMAND [options]\n\n";
  for (const Command& command : commands()) {
    std::string line = "  " + std::string(command.name);
    line.resize(14, ' ');
    text += line + std::string(command.what) + "\n";
  }
  return text + "\nminfer-eval COMMAND --help lists the options of a command.\n";
}

std::vector<OptionGroup> option_groups(const Command& command) {
  OptionGroup own{std::string(command.name), command.options};
  own.options.push_back(help_option());
  OptionGroup backends = backend_options_group();
  backends.options.push_back(isa_option());
  backends.options.push_back(kv_format_option());
  return {model_options_group(), std::move(own), std::move(backends)};
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return fail(invalid("no command (minfer-eval --help lists them)"), kUsage);
  if (arguments[0] == "--help" || arguments[0] == "-h") return print(overview());
  if (arguments[0] == "--version" || arguments[0] == "-V") return print(version_text("minfer-eval"));
  for (const Command& command : commands()) {
    if (command.name != arguments[0]) continue;
    const std::vector<OptionGroup> groups = option_groups(command);
    auto parsed = parse_options(groups, {arguments.begin() + 1, arguments.end()});
    if (!parsed.ok()) return fail(parsed.error(), kUsage);
    if (parsed->has("help"))
      return print(help_text("minfer-eval " + std::string(command.name) + " [options]: " + std::string(command.what) + "\n", groups));
    if (!parsed->words().empty()) return fail(invalid("'{}' is no option", parsed->words().front()), kUsage);
    for (const std::string& name : command.required)
      if (!parsed->has(name)) return fail(invalid("--{} is missing", name), kUsage);
    bool usage = false;
    auto config = read_configuration(groups, *parsed, &usage);
    if (!config.ok()) return fail(config.error(), usage ? kUsage : kFailed);
    auto backends = backend_overrides(*parsed);
    if (!backends.ok()) return fail(backends.error(), kUsage);
    int code = kFailed;
    const Status done = command.run({std::move(*config), std::move(*backends), std::move(*parsed), &code});
    return done.ok() ? kDone : fail(done.error(), code);
  }
  return fail(invalid("'{}' is no command (minfer-eval --help lists them)", arguments[0]), kUsage);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program([&] { return run({argv + 1, argv + argc}); });
}
