#include "programs/chat_loop.hpp"

#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstring>
#include <ctime>

#include "programs/chat_template_source.hpp"
#include "programs/line_input.hpp"
#include "programs/output.hpp"
#include "programs/progress_line.hpp"
#include "programs/thought_dimmer.hpp"
#include "runtime/chat_session.hpp"
#include "runtime/from_config.hpp"
#include "runtime/session_file.hpp"

namespace minfer::programs {
namespace {

constexpr std::string_view kHelp =
    "  /regen         another reply to the last message\n"
    "  /undo          take the last turn back\n"
    "  /clear         forget all turns; the system message stays\n"
    "  /system TEXT   set the system message\n"
    "  /save FILE     write the session to a file\n"
    "  /load FILE     go on with a saved session\n"
    "  /exit          end (as the end of the input does)\n"
    "Ctrl-C stops a reply; twice within a second it ends the program.";

// Set in signal handlers.
std::atomic<bool> interrupted = false;  // stop the reply
std::atomic<int> ended_by = 0;          // stop the program: the signal
std::atomic<int64_t> last_interrupt_ms = -10000;
static_assert(std::atomic<int64_t>::is_always_lock_free);

void on_signal(int signal) {
  const int saved = errno;
  if (signal == SIGINT) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t ms = int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
    if (ms - last_interrupt_ms.exchange(ms) < 1000) ended_by = signal;
    interrupted = true;
  } else {
    ended_by = signal;
  }
  wake_line_input(signal);
  errno = saved;
}

// No SA_RESTART: what waits is ended by them.
void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is a failed write, behind which the session is saved
}

// Tells whether a file is still the one that it was. All zero where there is none.
struct FileStamp {
  uint64_t inode = 0;
  int64_t size = 0, seconds = 0, nanoseconds = 0;

  static FileStamp of(const std::string& path) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) return {};
    return {status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  }
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

class Chat {
 public:
  Chat(const RunArguments& run, const Model& model, const Notes& notes, Session& session, const ChatText& text, sample::Sampler sampler,
       GenerateCallbacks engine_callbacks)
      : run_(run),
        notes_(notes),
        session_(session),
        model_(model),
        engine_(session, run.config.context.n_batch, std::move(engine_callbacks)),
        conversation_(engine_, text, std::move(sampler), options(run.config), run.config.prompt.system),
        terminal_(::isatty(STDIN_FILENO) && ::isatty(STDERR_FILENO)),
        coloured_(colours_on(run.config.output.color, STDOUT_FILENO)) {}

  Result<int> run() {
    if (!run_.session.empty()) {
      stamp_ = FileStamp::of(run_.session);  // before it is read: what is written between the two counts as another's
      if (::access(run_.session.c_str(), F_OK) == 0) {
        MINFER_TRY(load(run_.session));
        if (run_.config.prompt.system) notes_.line("The system message is not used: the session has its own (/system sets another).");
      }
      MINFER_TRY(check_session_place(run_.session));  // before anything is said that could not be kept
    }
    // The editor drops an escape sequence behind which nothing stands.
    const std::string prompt = coloured_ ? "\1\x1b[1;36m\1>\1\x1b[0m\1 " : "> ";
    input_ = open_line_input(terminal_, prompt, [] { return ended_by != 0; });
    bool more = true;
    if (!run_.prompt.empty()) {
      MINFER_TRY(turn(run_.prompt));
      more = !run_.single_turn;
    }
    const Status talked = more ? talk() : Status();
    input_.reset();  // the terminal is as it was
    if (!run_.session.empty()) MINFER_TRY(save_at_end());
    if (!talked.ok()) return talked.error();
    MINFER_TRY(output_.status());
    notes_.line(text("conversation ended after {} turn(s)", n_turns_));
    if (ended_by != 0) return 128 + ended_by;
    return failed_ && !terminal_ ? kFailed : kDone;  // a script is told
  }

 private:
  // Until the input or the user ends it.
  Status talk() {
    bool more = true;
    while (more && ended_by == 0 && !output_.failed()) {
      MINFER_ASSIGN(const auto message, next_message());
      if (!message) break;
      if (message->find_first_not_of(" \t\r\n") == std::string::npos) continue;
      MINFER_ASSIGN(more, handle(*message));
    }
    return {};
  }

  static ConversationOptions options(const Config& config) {
    ConversationOptions options;
    options.n_predict = config.generation.n_predict;
    options.stop = config.generation.stop;
    options.context_shift = config.context.shift == ContextShift::kOn;
    return options;
  }

  // One line, or with -mli all lines up to an empty one.
  Result<std::optional<std::string>> next_message() {
    std::string message;
    while (true) {
      bool thrown_away = false;
      MINFER_ASSIGN(const auto line, input_->next(&thrown_away));
      interrupted = false;
      if (thrown_away) return std::optional<std::string>(std::string());
      if (!line) return message.empty() ? line : std::optional<std::string>(message);
      if (!run_.multiline || (message.empty() && line->starts_with("/"))) return line;
      if (line->empty()) return std::optional<std::string>(message);
      message.append(message.empty() ? "" : "\n").append(*line);
    }
  }

  // False: the conversation ends.
  Result<bool> handle(const std::string& message) {
    if (message[0] != '/') {
      MINFER_TRY(turn(message));
      return !run_.single_turn;
    }
    constexpr std::string_view kSpaces = " \t\n\v\f\r";
    const std::string command = message.substr(0, message.find_first_of(kSpaces));
    const size_t rest_begin = message.find_first_not_of(kSpaces, command.size());
    const std::string rest = rest_begin == std::string::npos ? "" : message.substr(rest_begin);
    if (command == "/exit" || command == "/quit") return false;
    if (command == "/regen") {
      const auto result = conversation_.regenerate(callbacks());
      if (result.ok()) {
        MINFER_TRY(report(result, "regen"));
        return !run_.single_turn;
      }
      output_.write(dimmer_.flush());
      say(text("[{} failed: {}]", command, result.error().text));
      return true;
    }
    Status done;
    if (command == "/help")
      say(kHelp);
    else if (command == "/clear")
      done = tell(conversation_.clear(), "[history cleared]");
    else if (command == "/undo")
      done = tell(conversation_.undo(), "[turn taken back]");
    else if ((command == "/system" || command == "/save" || command == "/load") && rest.empty())
      say(text("[{} what? /help tells]", command));
    else if (command == "/system")
      done = tell(conversation_.set_system(rest), "[system message set]");
    else if (command == "/save")
      done = save(rest);
    else if (command == "/load")
      done = load(rest);
    else
      say(text("[there is no command {}; /help lists them]", command));
    if (!done.ok()) say(text("[{} failed: {}]", command, done.error().text));
    if (!done.ok() && (command == "/save" || command == "/load")) failed_ = true;
    return true;
  }

  Status tell(const Status& status, std::string_view words) {
    if (status.ok()) say(words);
    return status;
  }
  // Answers to commands and failures of turns: they are what the user waits for, -q or not.
  static void say(std::string_view words) { Notes(false).line(words); }

  TurnCallbacks callbacks() {
    TurnCallbacks callbacks;
    interrupted = false;
    callbacks.on_text = [this](std::string_view piece) { output_.write(coloured_ ? dimmer_.push(piece) : std::string(piece)); };
    callbacks.on_drop = [this](uint32_t n, bool shifted) {
      notes_.line(text("<<context full: dropped oldest {} turn(s){}>>", n, shifted ? "" : ", the rest is read again"));
    };
    callbacks.should_stop = [this] { return interrupted || ended_by != 0 || output_.failed(); };
    return callbacks;
  }

  Status turn(const std::string& message) { return report(conversation_.user_turn(message, callbacks()), "turn"); }

  // A turn that was refused is told, and the conversation goes on.
  Status report(const Result<TurnResult>& result, std::string_view what) {
    output_.write(dimmer_.flush());
    if (!result.ok()) {
      say(text("[error] {}", result.error().text));
      failed_ = true;
      return {};
    }
    output_.write("\n");
    if (!result->read) {
      say("[interrupted before the reply began: the conversation is as it was]");
      return {};
    }
    ++n_turns_;
    notes_.line(text("[{} {}] prefill {} tokens, generated {} tokens in {:.2f}s{}", what, n_turns_, result->n_prefilled,
                     result->n_generated, result->prefill_s + result->decode_s, ending(result->finish)));
    return {};
  }

  static std::string_view ending(FinishReason finish) {
    switch (finish) {
      case FinishReason::kLength: return ", stopped by n_predict";
      case FinishReason::kContextFull: return ", stopped: context full";
      case FinishReason::kCancelled: return ", interrupted";
      default: return "";
    }
  }

  Status save(const std::string& path) {
    const ConversationState state = conversation_.state();
    MINFER_TRY(save_session(path, session_identity(model_, session_), state, session_));
    notes_.line(text("[session] saved {} message(s), {} tokens to {}", state.messages.size(), state.tokens.size(), path));
    if (is_own_file(path)) stamp_ = FileStamp::of(run_.session);
    return {};
  }

  // What cannot be saved where it belongs is saved beside it.
  Status save_at_end() {
    const Status saved = stamp_ == FileStamp::of(run_.session)
                             ? save(run_.session)
                             : Status(io_error("session file {}: another program wrote it while this conversation went on", run_.session));
    if (saved.ok()) return {};
    const std::string beside = text("{}.{}", run_.session, ::getpid());
    if (!save(beside).ok()) return saved.error();
    return io_error("{}; this conversation is in {}", saved.error().text, beside);
  }

  bool is_own_file(const std::string& path) const {
    std::error_code none;  // a run without a session file
    return std::filesystem::equivalent(path, run_.session, none);
  }

  Status load(const std::string& path) {
    const FileStamp stamp = FileStamp::of(path);
    // What is being talked about now stays until the file has proved good.
    MINFER_ASSIGN(const SavedSession saved, SavedSession::open(path, session_identity(model_, session_), session_));
    MINFER_TRY(conversation_.clear());
    MINFER_TRY(saved.restore(session_, conversation_));
    if (is_own_file(path)) stamp_ = stamp;  // what another program wrote there is what goes on
    notes_.line(
        text("[session] resumed {} message(s), {} tokens from {}", conversation_.messages().size(), conversation_.mirror().size(), path));
    return {};
  }

  const RunArguments& run_;
  const Notes& notes_;
  Session& session_;
  const Model& model_;
  SessionEngine engine_;
  Conversation conversation_;
  Output output_;
  ThoughtDimmer dimmer_;
  std::unique_ptr<LineInput> input_;
  bool terminal_;
  bool coloured_;
  FileStamp stamp_;  // of the session file as this conversation read or wrote it
  uint32_t n_turns_ = 0;
  bool failed_ = false;  // a turn was refused
};

}  // namespace

Result<int> run_chat(const RunArguments& run, const Model& model, const Notes& notes) {
  MINFER_ASSIGN(const TemplateSource source, find_chat_template(run.config.prompt, model.chat_template(), template_folder()));
  if (source.text.empty())
    return invalid("a conversation needs a chat template and the model file has none; give one with --chat-template");
  MINFER_ASSIGN(ChatTemplate chat_template, ChatTemplate::parse(source.text, source.name));
  std::string changes;
  MINFER_ASSIGN(const uint32_t n_ctx, decide_n_ctx(run.config.context.n_ctx, kDefaultContextTokens, 0, model.info().n_ctx_train, &changes));
  if (!changes.empty()) notes.line(changes.substr(0, changes.size() - 1));
  MINFER_ASSIGN(const auto session, Session::create(model.engine(), session_params(run.config, n_ctx)));
  const GenerateOptions options = generate_options(run.config);
  MINFER_ASSIGN(sample::Sampler sampler, make_sampler(options, model.tokenizer(), *session));
  MINFER_ASSIGN(Traces traces, Traces::open());
  GenerateCallbacks engine_callbacks;
  traces.attach(*session, model, engine_callbacks);
  ProgressLine progress("Prefill", ProgressLine::Unit::kTokens, run.quiet ? std::nullopt : progress_terminal());
  engine_callbacks.on_prefill = [&progress](uint32_t done, uint32_t total) { progress.update(done, total); };
  const TemplateText text(std::move(chat_template), model.tokenizer());
  // The line editor reads characters, and those of a terminal are UTF-8 whatever the environment leaves open.
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
  catch_signals();
  MINFER_ASSIGN(const int code, Chat(run, model, notes, *session, text, std::move(sampler), std::move(engine_callbacks)).run());
  MINFER_TRY(traces.close());
  return code;
}

}  // namespace minfer::programs
