// minfer-run --cnv on a terminal: editing, signals, and the terminal as it was at the end.
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>

#include "cli/programs/markov_model.hpp"
#include "cli/programs/terminal.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* kPrompt = "\x1b[1;36m>\x1b[0m ";
constexpr std::string_view kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
constexpr int kFirst = 19, kLater = 20;  // tokens of a turn beside its message

MarkovModel short_model() {
  MarkovModel model = MarkovModel::chain({'\n', 'y', 'e', 's'});
  model.chat_template = kChatMl;
  return model;
}
MarkovModel endless_model() {
  MarkovModel model = MarkovModel::always({{'z', 8.0f}});
  model.chat_template = kChatMl;
  model.context = 1 << 20;
  return model;
}

std::string turn(int n, int n_prefilled) { return "[turn " + std::to_string(n) + "] prefill " + std::to_string(n_prefilled) + " tokens"; }

struct ChatOn {
  explicit ChatOn(const MarkovModel& model, const std::vector<std::string>& more = {}) : markov(model), terminal(command(more)) {}
  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> argv = {program("minfer-run"), "-m", markov.path(), "--cnv", "--greedy", "-t", "1"};
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  }
  // Ctrl-D on an empty line.
  void end() {
    REQUIRE(terminal.shows(kPrompt));
    terminal.type("\x04");
    CHECK(terminal.exit_code() == 0);
    CHECK(terminal.as_it_was());
    CHECK_THAT(terminal.screen(), Contains("\r\nconversation ended after"));
  }

  MarkovRun markov;
  Terminal terminal;
};

}  // namespace

TEST_CASE("minfer-run: --cnv on a terminal edits lines and remembers them") {
  ChatOn chat(short_model());
  Terminal& t = chat.terminal;
  REQUIRE(t.shows(kPrompt));
  CHECK_FALSE(t.as_it_was());  // it is edited
  t.type("first\r");
  CHECK(t.shows(turn(1, kFirst + 5) + ", generated 3 tokens"));
  REQUIRE(t.shows(kPrompt));
  t.type("\xc3\xa9\xe2\x98\x83\xf0\x9f\x98\x80\x7f\x7f\r");  // of three characters two are rubbed out: e acute is left
  CHECK(t.shows(turn(2, kLater + 2)));
  REQUIRE(t.shows(kPrompt));
  t.type("\x1b[A\x1b[A\x1b[D!\r");  // the first line again, and a '!' before its last letter
  CHECK(t.shows(turn(3, kLater + 6)));
  REQUIRE(t.shows(kPrompt));
  t.type("\r  /system\tbe brief\r");  // an empty line is no turn, and a command begins its line
  CHECK(t.shows(turn(4, kLater + 18)));
  REQUIRE(t.shows(kPrompt));
  t.type("/system\tbe brief\r");
  CHECK(t.shows("[system message set]"));
  chat.end();
}

TEST_CASE("minfer-run: --cnv on a terminal takes pasted lines and very long ones") {
  ChatOn lines(short_model(), {"--mli"});
  std::string pasted, expected;
  for (int i = 0; i < 40; ++i) pasted += "line " + std::to_string(10 + i) + "\r";
  REQUIRE(lines.terminal.shows(kPrompt));
  lines.terminal.type(pasted + "\r");
  CHECK(lines.terminal.shows(turn(1, kFirst + 40 * 8 - 1)));
  lines.end();

  ChatOn chat(short_model());
  REQUIRE(chat.terminal.shows(kPrompt));
  chat.terminal.type(std::string(3000, 'x') + "\r");
  CHECK(chat.terminal.shows(turn(1, kFirst + 3000)));
  chat.end();
}

TEST_CASE("minfer-run: Ctrl-C on a terminal stops the reply, twice within a second the program") {
  ChatOn chat(endless_model(), {"-n", "-1", "--n-ctx", "1000000"});
  Terminal& t = chat.terminal;
  REQUIRE(t.shows(kPrompt));
  t.type("go\r");
  REQUIRE(t.shows("zzzz"));
  t.type("\x03");
  CHECK(t.shows("interrupted"));
  REQUIRE(t.shows(kPrompt));
  t.type("/undo\r");
  CHECK(t.shows("[turn taken back]"));
  REQUIRE(t.shows(kPrompt));
  t.type("again\r");
  REQUIRE(t.shows("zzzz"));
  t.type("\x03");
  CHECK(t.shows("interrupted"));
  t.type("\x03");
  CHECK(t.exit_code() == 130);
  CHECK(t.as_it_was());
}

TEST_CASE("minfer-run: signals that end a conversation on a terminal leave a session and the terminal as it was") {
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    INFO(signal);
    const TempDir dir;
    const std::string file = dir.path() / "talk";
    ChatOn chat(endless_model(), {"-n", "-1", "--n-ctx", "1000000", "--session", file});
    REQUIRE(chat.terminal.shows(kPrompt));
    chat.terminal.type("go\r");
    REQUIRE(chat.terminal.shows("zzzz"));
    chat.terminal.signal(signal);
    CHECK(chat.terminal.exit_code() == 128 + signal);
    CHECK(chat.terminal.as_it_was());
    CHECK(chat.terminal.shows("[session] saved 2 message(s)"));
    CHECK(std::filesystem::is_regular_file(file));

    ChatOn waiting(short_model(), {"--session", file + "2"});
    REQUIRE(waiting.terminal.shows(kPrompt));
    waiting.terminal.type("half a li");
    REQUIRE(waiting.terminal.shows("half a li"));
    waiting.terminal.signal(signal);
    CHECK(waiting.terminal.exit_code() == 128 + signal);
    CHECK(waiting.terminal.as_it_was());
    CHECK(std::filesystem::is_regular_file(file + "2"));
  }
}

TEST_CASE("minfer-run: --cnv on a terminal goes on behind Ctrl-Z and in a window of another size") {
  ChatOn chat(short_model());
  Terminal& t = chat.terminal;
  REQUIRE(t.shows(kPrompt));
  t.type("hel");
  REQUIRE(t.shows("hel"));
  t.type("\x1a");
  INFO(t.screen());
  REQUIRE(t.stopped());
  CHECK(t.as_it_was());
  t.signal(SIGCONT);
  REQUIRE(t.shows("hel"));  // the line is shown again
  CHECK_FALSE(t.as_it_was());
  t.resize(40);
  REQUIRE(t.shows("hel"));
  t.type("lo " + std::string(60, 'x') + "\r");
  CHECK(t.shows(turn(1, kFirst + 66)));
  chat.end();
}
