// minfer-run: answers a prompt with a model. Text on standard output, everything else on standard error.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "programs/chat_loop.hpp"
#include "programs/chat_template_source.hpp"
#include "programs/output.hpp"
#include "programs/progress_line.hpp"
#include "programs/run_options.hpp"
#include "programs/run_report.hpp"
#include "runtime/from_config.hpp"
#include "runtime/graph_json.hpp"
#include "runtime/prompt.hpp"

namespace {

using namespace minfer;
using namespace minfer::programs;

std::atomic<int> stop_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // it is set in a signal handler

// The first Ctrl-C (SIGINT) or SIGTERM ends the generation, a second one of either kind the process.
void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    stop_signal = signal;
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Status write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (!file) return io_error("{}: {}", path, std::strerror(errno));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written) return io_error("{}: {}", path, std::strerror(errno));
  return {};
}

Status dump_graphs(const RunArguments& run, const Model& model) {
  std::string note;
  MINFER_ASSIGN(const uint32_t n_ctx, decide_n_ctx(run.config.context.n_ctx, kDefaultContextTokens, 0, model.info().n_ctx_train, &note));
  const GraphParams params = make_graph_params(1, 1, session_params(run.config, n_ctx));
  MINFER_ASSIGN(const auto compiled, compile_graph(model.engine(), params));
  if (!run.dump_dot.empty()) MINFER_TRY(write_file(run.dump_dot, dump_dot(compiled->graph, node_devices(*compiled, model.engine()))));
  if (!run.dump_json.empty()) MINFER_TRY(write_file(run.dump_json, dump_json(*compiled, model.engine(), model.general_name())));
  return {};
}

Result<std::vector<int32_t>> make_prompt(const RunArguments& run, const Model& model, const Notes& notes) {
  const PromptConfig& prompt = run.config.prompt;
  MINFER_ASSIGN(const TemplateSource source, find_chat_template(prompt, model.chat_template(), template_folder()));
  if (source.text.empty()) {
    if (prompt.chat_template != PromptTemplate::kOff) notes.line("The model has no chat template: the prompt is used as it is.");
    if (prompt.system) notes.line("The system message is not used: there is no chat template.");
    return raw_prompt(model.tokenizer(), run.prompt);
  }
  MINFER_ASSIGN(const ChatTemplate chat_template, ChatTemplate::parse(source.text, source.name));
  std::vector<ChatMessage> messages;
  if (prompt.system) messages.push_back({"system", *prompt.system});
  messages.push_back({"user", run.prompt});
  return chat_prompt(chat_template, model.tokenizer(), messages);
}

// What stays when the context is shifted: all that stands before the user's message.
Result<uint32_t> positions_to_keep(const RunArguments& run, const Model& model, const std::vector<int32_t>& prompt) {
  MINFER_ASSIGN(const TemplateSource source, find_chat_template(run.config.prompt, model.chat_template(), template_folder()));
  if (source.text.empty()) return 0u;
  RunArguments other = run;
  other.prompt.clear();
  MINFER_ASSIGN(const std::vector<int32_t> without, make_prompt(other, model, Notes(true)));
  const auto differ = std::mismatch(prompt.begin(), prompt.end(), without.begin(), without.end());
  return static_cast<uint32_t>(differ.first - prompt.begin());
}

Result<int> generate_text(const RunArguments& run, const Model& model, const Notes& notes) {
  MINFER_ASSIGN(const std::vector<int32_t> prompt, make_prompt(run, model, notes));
  if (prompt.empty()) return invalid("the prompt is empty");
  std::string changes;
  MINFER_ASSIGN(const uint32_t n_ctx, decide_n_ctx(run.config.context.n_ctx, kDefaultContextTokens, static_cast<uint32_t>(prompt.size()),
                                                   model.info().n_ctx_train, &changes));
  if (!changes.empty()) notes.line(changes.substr(0, changes.size() - 1));  // its lines end with a newline
  notes.line(text("Prompt: {} tokens", prompt.size()));

  CParams cparams = session_params(run.config, n_ctx);
  MINFER_ASSIGN(const auto session, Session::create(model.engine(), cparams));
  MINFER_ASSIGN(Traces traces, Traces::open());
  GenerateCallbacks callbacks;
  traces.attach(*session, model, callbacks);
  Output output;
  const auto start = std::chrono::steady_clock::now();
  ProgressLine progress("Prefill", ProgressLine::Unit::kTokens, run.quiet ? std::nullopt : progress_terminal());
  callbacks.should_stop = [&] {
    progress.tick();
    return stop_signal.load(std::memory_order_relaxed) != 0 || output.failed();
  };
  callbacks.on_prefill = [&](uint32_t done, uint32_t total) {
    progress.update(done, total);
    if (done == total) print_prefill(notes, total, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  };
  if (!run.json) callbacks.on_text = [&](std::string_view piece) { output.write(piece); };

  callbacks.on_shift = [&](uint32_t first, uint32_t dropped) {
    notes.line(text("Context full: positions {} to {} are dropped, generation goes on.", first, first + dropped - 1));
  };

  GenerateOptions options = generate_options(run.config);
  if (options.context_shift) {
    MINFER_ASSIGN(options.n_keep, positions_to_keep(run, model, prompt));
  }
  catch_stop_signals();
  MINFER_ASSIGN(const GenerateResult result, generate(*session, model.tokenizer(), prompt, options, callbacks));
  progress.erase();  // an interrupted prefill leaves it
  const SessionStats stats = session->stats();
  if (run.json)
    output.write(result_json(model, result, stats, n_ctx));
  else
    output.finish_line();
  MINFER_TRY(output.status());
  print_footer(notes, result, n_ctx);
  if (traces.timing()) print_timing(result, stats);
  MINFER_TRY(traces.close());
  return result.finish == FinishReason::kCancelled ? kSignalled + stop_signal : kDone;
}

Result<int> run_model(const RunArguments& run) {
  const Notes notes(run.quiet);
  MINFER_ASSIGN(const std::filesystem::path path, find_model(run.config));
  MINFER_TRY(find_chat_template(run.config.prompt, {}, template_folder()).status());  // a wrong name is told before the model is loaded
  notes.line("Loading model: " + path.string());
  MINFER_ASSIGN(const Loaded loaded, load_model(
                                         run.config, path, run.backends, [&](std::string_view line) { notes.line(line); }, run.quiet));
  print_header(notes, *loaded.model);
  if (run.meta) print_meta(*loaded.model);
  if (!run.dump_dot.empty() || !run.dump_json.empty()) {
    MINFER_TRY(dump_graphs(run, *loaded.model));
    return kDone;
  }
  return run.conversation ? run_chat(run, *loaded.model, notes) : generate_text(run, *loaded.model, notes);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program([&]() -> int {
    int code = kFailed;
    const auto run = read_run_arguments({argv + 1, argv + argc}, &code);
    if (!run.ok()) return fail(run.error(), code);
    if (!run->info.empty()) return print(run->info);
    const auto done = run_model(*run);
    return done.ok() ? *done : fail(done.error());
  });
}
