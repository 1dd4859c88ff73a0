#include "programs/run_options.hpp"

#include "programs/prompt_source.hpp"

namespace minfer::programs {
namespace {

constexpr std::string_view kIntro =
    "minfer-run [options] [prompt ...]: answers a prompt with a model\n"
    "\n"
    "The prompt is the words, joined by spaces, or the file of -f, or all of standard input. \"--\" ends the options.\n"
    "Standard output gets the generated text and nothing else; a final newline is added on a terminal only.\n"
    "Options win over the configuration file; [key] is the key that an option sets there.\n"
    "Exit status: 0 done, 1 refused or failed, 2 bad command line, 130 ended by Ctrl-C, 143 by SIGTERM.\n";

constexpr std::string_view kEnvironment =
    "\nEnvironment:\n"
    "  MINFER_MODEL_DIR       models given by name (default ~/.cache/minfer/models)\n"
    "  MINFER_PLUGIN_PATH     folders with plugins, separated by ':'\n"
    "  MINFER_TIMING=1        sampling and forward time per token, graph builds, reuses and re-maps\n"
    "  MINFER_REBUILD_TRACE=1 a line for every graph that is built, and what backends tell about their plans for it: the cpu backend\n"
    "                         how often its threads wait for each other\n"
    "  MINFER_GRAPH_TRACE=1   splits and operations of every step\n"
    "  MINFER_TOKEN_TRACE=F   writes \"position TAB id\" for every token to the file F\n"
    "  MINFER_NO_FUSE_QKV=1, MINFER_NO_FUSE_FFN=1   switch a fusion off\n";

std::vector<OptionGroup> option_groups() {
  using enum OptionKind;
  OptionGroup prompt{
      "Prompt",
      {{"file", 'f', kValue, "FILE", "", "read the prompt from a file, byte for byte (a UTF-8 BOM is dropped)"},
       {"system", 0, kValue, "TEXT", "prompt.system", "system message; default none"},
       {"chat-template", 0, kValue, "NAME|FILE", "prompt.template",
        "use this chat template instead of the model's: chatml, llama3, ... (an unknown name lists all), or a file, which has "
        "'/' or '.' in its name"},
       {"no-template", 0, kFlag, "off", "prompt.template",
        "feed the prompt as it is, control tokens in it included, without the model's chat template"}}};
  OptionGroup conversation{
      "Conversation",
      {{"cnv", 0, kFlag, "", "",
        "talk: a turn for each line of the terminal or of standard input; a prompt is the first turn; /help lists commands"},
       {"session", 0, kValue, "FILE", "", "go on with the conversation of this file, if there is one, and write it at the end"},
       {"st", 0, kFlag, "", "", "end after one turn"},
       {"mli", 0, kFlag, "", "", "a message is several lines, up to an empty one"}}};
  OptionGroup generation{
      "Generation",
      {{"n-predict", 'n', kValue, "N", "generation.n_predict",
        "tokens at most; 0: read the prompt only; -1: until the context is full; default 512"},
       {"n-ctx", 0, kValue, "N", "context.n_ctx", "context size, a limit; default auto: 4096, raised to the prompt"},
       {"context-shift", 0, kValue, "on|off", "context.shift",
        "on: where a text fills the context, drop its oldest half behind the system message (with --cnv the oldest turns) and go on; "
        "default off. A message that --cnv has no room for drops the oldest turns in either case"},
       {"stop", 0, kRepeated, "TEXT", "generation.stop", "end before this text, which is not printed; repeatable"},
       {"n-batch", 0, kValue, "N", "context.n_batch", "prompt tokens per step; default 512"},
       kv_format_option()}};
  OptionGroup sampling{
      "Sampling",
      {{"seed", 0, kValue, "N", "sampling.seed", "the same seed gives the same text; default 42"},
       {"temp", 0, kValue, "T", "sampling.temperature", "randomness; 0: always the most likely token; default 0.8"},
       {"greedy", 0, kFlag, "0", "sampling.temperature", "always the most likely token, whatever --temp says"},
       {"top-k", 0, kValue, "K", "sampling.top_k", "keep the K most likely tokens; 0: off; default 40"},
       {"typical", 0, kValue, "P", "sampling.typical_p",
        "keep the tokens whose surprise is nearest to the average one, up to this probability; 1: off; default 1"},
       {"top-p", 0, kValue, "P", "sampling.top_p", "keep the most likely tokens up to this probability; 1: off; default 0.95"},
       {"min-p", 0, kValue, "P", "sampling.min_p", "drop tokens less likely than this share of the best; 0: off; default 0"},
       {"xtc-probability", 0, kValue, "P", "sampling.xtc_probability",
        "how often the most likely tokens are dropped, all but one of those that reach --xtc-threshold; 0: off; default 0"},
       {"xtc-threshold", 0, kValue, "P", "sampling.xtc_threshold", "probability from 0 to 0.5, 0.1 for example; default 0.5"},
       {"top-n-sigma", 0, kValue, "N", "sampling.top_n_sigma", "keep logits within N standard deviations of the best; 0: off; default 0"},
       {"mirostat", 0, kValue, "0|1|2", "sampling.mirostat",
        "keep the surprise near a target instead of using the temperature; 0: off; default 0"},
       {"mirostat-tau", 0, kValue, "T", "sampling.mirostat_tau", "that target, in bits; default 5"},
       {"mirostat-eta", 0, kValue, "E", "sampling.mirostat_eta", "how fast it is followed; default 0.1"},
       {"mirostat-m", 0, kValue, "N", "sampling.mirostat_m", "tokens that version 1 estimates from; default 100"},
       {"logit-bias", 0, kRepeated, "ID:BIAS", "sampling.logit_bias",
        "add to the logit of a token, -100 to 100; several with commas between them; repeatable"},
       {"repeat-penalty", 0, kValue, "X", "sampling.repeat_penalty",
        "weaken tokens that were there already; 1: off; below 1: favour them; default 1.1"},
       {"repeat-last-n", 0, kValue, "N", "sampling.repeat_last_n",
        "tokens that the penalties look back on; -1: the whole context; 0: none; default 64"},
       {"frequency-penalty", 0, kValue, "X", "sampling.frequency_penalty", "subtracted for each earlier occurrence; default 0"},
       {"presence-penalty", 0, kValue, "X", "sampling.presence_penalty", "subtracted once from what was there already; default 0"},
       {"dry-multiplier", 0, kValue, "X", "sampling.dry_multiplier",
        "weaken tokens that continue a repeat by X * base^(length - allowed length); 0: off; default 0"},
       {"dry-base", 0, kValue, "X", "sampling.dry_base", "at least 1; default 1.75"},
       {"dry-allowed-length", 0, kValue, "N", "sampling.dry_allowed_length", "shortest repeat that counts; default 2"},
       {"dry-penalty-last-n", 0, kValue, "N", "sampling.dry_penalty_last_n",
        "tokens that DRY looks back on; -1: the whole context; default 64"},
       {"dry-sequence-breaker", 0, kRepeated, "TEXT", "sampling.dry_sequence_breakers",
        "no repeat reaches over this text; repeatable; none: no breakers; default newline, colon, quote and star"}}};
  OptionGroup output{
      "Output",
      {{"quiet", 'q', kFlag, "", "", "no headers, rates, notices and progress on standard error"},
       {"color", 0, kValue, "auto|always|never", "output.color", "colours; default auto: on a terminal, unless NO_COLOR is set"},
       {"json", 0, kFlag, "", "", "one JSON object on standard output instead of the text"},
       {"meta", 0, kFlag, "", "", "print the model's metadata and key tensors to standard error first"},
       {"dump-graph", 0, kValue, "PATH", "", "write the graph of a decode step as DOT and end; needs no prompt"},
       {"dump-graph-json", 0, kValue, "PATH", "", "the same as JSON"},
       help_option(),
       {"version", 'V', kFlag, "", "", "print the version"}}};
  return {model_options_group(), std::move(prompt),       std::move(conversation), std::move(generation),
          std::move(sampling),   backend_options_group(), std::move(output)};
}

}  // namespace

Result<RunArguments> read_run_arguments(const std::vector<std::string>& arguments, int* code) {
  *code = kUsage;
  const std::vector<OptionGroup> groups = option_groups();
  MINFER_ASSIGN(const ParsedOptions parsed, parse_options(groups, arguments));
  RunArguments run;
  if (parsed.has("help")) {
    run.info = help_text(kIntro, groups) + std::string(kEnvironment);
    return run;
  }
  if (parsed.has("version")) {
    run.info = version_text("minfer-run");
    return run;
  }
  run.meta = parsed.has("meta");
  run.quiet = parsed.has("quiet");
  run.json = parsed.has("json");
  run.conversation = parsed.has("cnv");
  run.single_turn = parsed.has("st");
  run.multiline = parsed.has("mli");
  run.session = parsed.value("session");
  for (const char* name : {"session", "st", "mli"})
    if (parsed.has(name) && !run.conversation) return invalid("--{} belongs to a conversation: give --cnv too", name);
  if (parsed.has("session") && run.session.empty()) return invalid("--session: the path is empty");
  for (const char* name : {"json", "no-template"})
    if (parsed.has(name) && run.conversation) return invalid("--cnv and --{} do not go together", name);
  run.dump_dot = parsed.value("dump-graph");
  run.dump_json = parsed.value("dump-graph-json");
  for (const char* name : {"dump-graph", "dump-graph-json"})
    if (parsed.has(name) && parsed.value(name).empty()) return invalid("--{}: the path is empty", name);
  if (parsed.has("chat-template") && parsed.has("no-template")) return invalid("--chat-template and --no-template exclude each other");
  MINFER_ASSIGN(run.backends, backend_overrides(parsed));
  bool usage = false;
  auto config = read_configuration(groups, parsed, &usage);
  *code = usage ? kUsage : kFailed;
  if (!config.ok()) return config.error();
  run.config = std::move(*config);
  const bool first_turn = !parsed.words().empty() || parsed.has("file");
  if (run.dump_dot.empty() && run.dump_json.empty() && (!run.conversation || first_turn)) {
    MINFER_ASSIGN(run.prompt, read_prompt(parsed, code));
  }
  return run;
}

}  // namespace minfer::programs
