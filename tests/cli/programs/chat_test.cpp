// minfer-run --cnv: turns, commands, the end of the input, session files, signals.
#include <catch2/catch.hpp>
#include <filesystem>

#include "cli/programs/markov_model.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::string_view kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// Answers "yes" to everything.
MarkovModel yes_model() {
  MarkovModel model = MarkovModel::chain({'\n', 'y', 'e', 's'});
  model.chat_template = kChatMl;
  return model;
}
// Every letter of a reply is drawn.
MarkovModel drawing_model() {
  MarkovModel model = MarkovModel::always({{'A', 2.0f}, {'B', 1.5f}, {'C', 1.0f}, {'D', 0.5f}});
  model.chat_template = kChatMl;
  return model;
}

std::string quoted(const std::string& word) { return "'" + word + "'"; }

// By a shell, which can close streams and limit files.
ProcessResult shell(const std::string& command) { return run_process({"/bin/sh", "-c", command}); }

}  // namespace

TEST_CASE("minfer-run: --cnv answers a line of a pipe each and reads what is new only") {
  const MarkovRun markov(yes_model());
  const auto run = markov.run({"--cnv", "--greedy"}, "hello\nand now?\n");
  CHECK(run.exit_code == 0);
  CHECK(run.out == "yes\nyes\n");
  CHECK_THAT(run.err, Contains("[turn 1] prefill 24 tokens, generated 3 tokens"));  // im_start user\n hello im_end \n im_start assistant\n
  CHECK_THAT(run.err, Contains("[turn 2] prefill 28 tokens, generated 3 tokens"));  // and a newline before it
  CHECK_THAT(run.err, Contains("conversation ended after 2 turn(s)"));
  const auto first = markov.run({"--cnv", "--st", "-q", "--greedy", "hello"}, "never read\n");
  CHECK(first.out == "yes\n");
  CHECK(first.err.empty());
  CHECK(markov.run({"--cnv", "-q", "--greedy", "hello"}, "more\n").out == "yes\nyes\n");
  CHECK(markov.run({"--cnv", "--mli", "-q", "--greedy"}, "two\nlines\n\nnext\n\n").out == "yes\nyes\n");
}

TEST_CASE("minfer-run: --cnv ends with its input, whatever the end looks like") {
  const MarkovRun markov(yes_model());
  for (const auto& [input, out] :
       {std::pair<std::string, std::string>{"", ""}, {"hi", "yes\n"}, {"hi\n\n\n", "yes\n"}, {"hi\r\n", "yes\n"}, {"/exit\nhi\n", ""}}) {
    INFO(input);
    const auto run = markov.run({"--cnv", "--greedy", "-q"}, input);
    CHECK(run.exit_code == 0);
    CHECK(run.out == out);
    CHECK(run.err.empty());
  }
  const auto closed = shell(quoted(program("minfer-run")) + " -m " + quoted(markov.path()) + " --cnv --greedy -q <&-");
  CHECK(closed.exit_code == 0);
  CHECK(closed.out.empty());
}

TEST_CASE("minfer-run: --cnv obeys commands and says what it does not know") {
  const MarkovRun markov(yes_model());
  const auto run =
      markov.run({"--cnv", "--greedy"}, "/regen\na\n/regen\n/undo\n/undo\n/system be brief\nb\n/clear\nc\n/what\n/save\n/help\n");
  CHECK(run.exit_code == 0);
  CHECK(run.out == "yes\nyes\nyes\nyes\n");
  CHECK_THAT(run.err, Contains("[/regen failed: there is no reply to replace]"));
  CHECK_THAT(run.err, Contains("[regen 2] prefill 1 tokens"));
  CHECK_THAT(run.err, Contains("[turn taken back]"));
  CHECK_THAT(run.err, Contains("[/undo failed: there is no turn to take back]"));
  CHECK_THAT(run.err, Contains("[turn 3] prefill 38 tokens"));  // with "<|im_start|>system\nbe brief<|im_end|>\n"
  CHECK_THAT(run.err, Contains("[history cleared]"));
  CHECK_THAT(run.err, Contains("[there is no command /what; /help lists them]"));
  CHECK_THAT(run.err, Contains("[/save what? /help tells]"));
  CHECK_THAT(run.err, Contains("/regen "));
}

TEST_CASE("minfer-run: options of a conversation are checked") {
  const MarkovRun markov(yes_model());
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--session", "x"},
                                                    {"--st"},
                                                    {"--mli"},
                                                    {"--cnv", "--json"},
                                                    {"--cnv", "--no-template"},
                                                    {"--cnv", "--session", ""}}) {
    const auto run = markov.run(arguments, "hi\n");
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
  }
  MarkovModel plain = yes_model();
  plain.chat_template.clear();
  const auto run = MarkovRun(plain).run({"--cnv"}, "hi\n");
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err, Contains("error: a conversation needs a chat template"));
}

TEST_CASE("minfer-run: a full context drops the oldest turns of a conversation and a message too long for it is refused") {
  const MarkovRun markov(yes_model());
  std::string input;
  for (int i = 0; i < 10; ++i) input += "message " + std::to_string(i) + "\n";
  const auto cut = markov.run({"--cnv", "--greedy", "--n-ctx", "128"}, input);
  CHECK(cut.exit_code == 0);
  CHECK_THAT(cut.err, Contains(", stopped: context full"));
  const auto run = markov.run({"--cnv", "--greedy", "--n-ctx", "128", "--context-shift", "on"}, input + std::string(200, 'x') + "\nlast\n");
  CHECK(run.out == std::string("yes\nyes\nyes\nyes\nyes\nyes\nyes\nyes\nyes\nyes\nyes\n"));
  CHECK_THAT(run.err, Contains("<<context full: dropped oldest 1 turn(s)>>"));
  CHECK_THAT(run.err, Contains("[error] the message does not fit"));
  CHECK(run.exit_code == 1);
}

TEST_CASE("minfer-run: a resumed conversation goes on as if it had never ended, sampled too") {
  const MarkovRun markov(drawing_model());
  const std::string file = markov.folder() / "talk.session";
  const std::vector<std::string> common = {"--cnv", "-q", "-n", "40", "--seed", "7", "--mirostat", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return more;
  };
  const std::string whole = markov.run(with({}), "one\ntwo\nthree\n").out;
  const auto first = markov.run(with({"--session", file}), "one\ntwo\n");
  REQUIRE(first.exit_code == 0);
  const auto second = markov.run(with({"--session", file}), "three\n");
  CHECK(second.exit_code == 0);
  CHECK(first.out + second.out == whole);
  CHECK(whole.size() == 3 * 41);
  CHECK_THAT(markov.run({"--cnv", "--session", file, "--system", "other"}, "").err, Contains("The system message is not used"));
}

TEST_CASE("minfer-run: a resumed conversation of a real model computes no old token in any KV format") {
  const std::string model = model_file(kSmolLm2Model);
  for (const std::string format : {"f32", "f16", "q8_0"}) {
    const TempDir dir;
    const std::string file = dir.path() / "talk";
    const auto run = [&](std::vector<std::string> more, std::string_view input) {
      more.insert(more.end(), {"-m", model, "--cnv", "--greedy", "-n", "12", "--kv-format", format});
      return minfer_run(more, input);
    };
    const auto whole = run({}, "Name a colour.\nAnother one?\n");
    const auto first = run({"--session", file}, "Name a colour.\n");
    REQUIRE(first.exit_code == 0);
    const auto second = run({"--session", file}, "Another one?\n");
    CHECK(first.out + second.out == whole.out);
    const size_t at = whole.err.find("[turn 2] prefill ");
    REQUIRE(at != std::string::npos);
    CHECK_THAT(second.err, Contains("[turn 1]" + whole.err.substr(at + 8, whole.err.find(" tokens", at) - at - 8)));
  }
}

TEST_CASE("minfer-run: a session file is refused with the reason and stays as it is") {
  const MarkovRun markov(drawing_model());
  const std::string file = markov.folder() / "talk";
  REQUIRE(markov.run({"--cnv", "-q", "-n", "5", "--session", file}, "one\n").exit_code == 0);
  const std::string good = read_file(file);
  const auto refused = [&](const std::string& bytes, const std::string& why, std::vector<std::string> more = {}) {
    write_file(file, bytes);
    more.insert(more.end(), {"--cnv", "-q", "--session", file});
    const auto run = markov.run(more, "two\n");
    INFO(why);
    CHECK(run.exit_code == 1);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, Contains("error: session file " + file + ": ") && Contains(why));
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(read_file(file) == bytes);
  };
  for (size_t at = 8; at < good.size(); at += good.size() / 40) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    refused(damaged, at < 12 ? "version" : "damaged");
  }
  refused(good.substr(0, good.size() - 1), "damaged");
  refused(good.substr(0, 20), "this is no session file");
  refused("GGUF" + good, "this is no session file");
  refused(good + "x", "damaged");
  refused(good, "it was saved with KV format f16, this run has f32", {"--kv-format", "f32"});
  refused(good, "n_ctx is 16", {"--n-ctx", "16"});
  const MarkovRun other(yes_model());
  write_file(file, good);
  const auto run = other.run({"--cnv", "-q", "--session", file}, "two\n");
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err, Contains("it was saved with model"));
}

TEST_CASE("minfer-run: a program killed while it saves and a disk that is full leave the old session whole") {
  const MarkovRun markov(drawing_model());
  const std::string file = markov.folder() / "talk";
  REQUIRE(markov.run({"--cnv", "-q", "-n", "5", "--session", file}, "one\n").exit_code == 0);
  std::string saves;
  for (int i = 0; i < 2000; ++i) saves += "/save " + file + "\n";
  write_file(markov.folder() / "saves", "two\n" + saves);
  const std::string run = quoted(program("minfer-run")) + " -m " + quoted(markov.path()) + " --cnv -q -n 5 --session " + quoted(file);
  for (int i = 0; i < 20; ++i) {
    const std::string delay = "0." + std::to_string(10 + 2 * i);
    shell(run + " <" + quoted(markov.folder() / "saves") + " & sleep " + delay + "; kill -9 $!; wait $! 2>/dev/null");
    const auto after = markov.run({"--cnv", "-q", "-n", "1", "--session", file}, "");
    REQUIRE(after.exit_code == 0);
  }
  const std::string before = read_file(file);
  const auto full = shell("ulimit -f 1; echo more | " + run);
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, Contains("error: session file " + file));
  CHECK(read_file(file) == before);
}

TEST_CASE("minfer-run: a session is saved in place of a regular file only, and where the reader of the text has gone") {
  const MarkovRun markov(drawing_model());
  const std::string folder = markov.folder();
  write_file(folder + "/precious", "mine");
  write_file(folder + "/talk.tmp", "mine too");
  std::filesystem::create_symlink(folder + "/precious", folder + "/link");
  const auto run =
      markov.run({"--cnv", "-q", "-n", "3"}, "hi\n/save " + folder + "/link\n/save " + folder + "\n/save " + folder + "/talk\n");
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err, Contains("link: there is something that is no regular file") && Contains(folder + ": there is something that is no"));
  CHECK(read_file(folder + "/precious") == "mine");
  CHECK(read_file(folder + "/talk.tmp") == "mine too");
  CHECK(std::filesystem::is_regular_file(folder + "/talk"));

  const std::string command = quoted(program("minfer-run")) + " -m " + quoted(markov.path()) + " --cnv -n 3 -q --session ";
  shell("(echo hi; sleep 1; echo there) | " + command + quoted(folder + "/gone") + " | head -c 1");
  CHECK(std::filesystem::is_regular_file(folder + "/gone"));
  const auto bad_input = shell(command + quoted(folder + "/kept") + " hello <" + quoted(folder));
  CHECK(bad_input.exit_code == 1);
  CHECK_THAT(bad_input.err, Contains("standard input"));
  CHECK(std::filesystem::is_regular_file(folder + "/kept"));
  // Refused before anything is said.
  for (const char* place : {"/no/where", "/link", ""}) {
    const auto refused = markov.run({"--cnv", "-q", "--session", folder + place}, "hi\n");
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK_THAT(refused.err, Contains("session file " + folder + place));
    CHECK(refused.out.empty());
  }
}

TEST_CASE("minfer-run: a session file that another program wrote meanwhile is left, and this conversation is kept beside it") {
  const MarkovRun markov(drawing_model());
  const std::string folder = markov.folder(), file = folder + "/talk";
  REQUIRE(markov.run({"--cnv", "-q", "-n", "3", "--session", folder + "/other"}, "one\ntwo\n").exit_code == 0);
  const std::string command = quoted(program("minfer-run")) + " -m " + quoted(markov.path()) + " --cnv -n 3 -q --session " + quoted(file);
  // The other one writes when the first reply is there.
  const std::string out = folder + "/out", other = folder + "/other";
  const auto run = shell("(echo hi; while [ ! -s " + out + " ]; do sleep 0.02; done; cp " + other + " " + file + "; echo bye) | " +
                         command + " >" + out);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err, Contains("another program wrote it") && Contains("this conversation is in " + file + "."));
  CHECK(read_file(file) == read_file(other));
  const std::string beside = run.err.substr(run.err.rfind(file + "."), run.err.find_last_not_of('\n') + 1 - run.err.rfind(file + "."));
  const auto resumed = markov.run({"--cnv", "-n", "1", "--session", beside}, "");
  CHECK_THAT(resumed.err, Contains("resumed 4 message(s)"));
  // Taken up with /load it is this conversation's own.
  std::filesystem::remove(out);
  const auto taken = shell("(echo hi; while [ ! -s " + out + " ]; do sleep 0.02; done; cp " + beside + " " + file + "; echo /load " + file +
                           "; echo bye) | " + command + " >" + out);
  INFO(taken.err);
  CHECK(taken.exit_code == 0);
  CHECK_THAT(markov.run({"--cnv", "-n", "1", "--session", file}, "").err, Contains("resumed 6 message(s)"));
  // Its own saves are not another program's.
  CHECK(markov.run({"--cnv", "-q", "-n", "3", "--session", file}, "more\n/save " + file + "\nand more\n").exit_code == 0);
}

TEST_CASE("minfer-run: lines of spaces are no turns") {
  const MarkovRun markov(drawing_model());
  CHECK_THAT(markov.run({"--cnv", "-n", "1"}, "\n   \n\t\r\nhi\n").err, Contains("conversation ended after 1 turn(s)"));
}

TEST_CASE("minfer-run: Ctrl-C stops a reply and SIGTERM the conversation, which is saved") {
  MarkovModel endless = drawing_model();
  const MarkovRun markov(endless);
  const std::string file = markov.folder() / "talk";
  const std::string run = quoted(program("minfer-run")) + " -m " + quoted(markov.path()) + " --cnv -n -1 --session " + quoted(file);
  // The input stays open; the reply would go on to the end of the context.
  const auto ended = shell("(echo hello; sleep 6) | " + run + " >/dev/null & p=$!; sleep 1; kill -TERM $p; wait $p; echo $?");
  CHECK_THAT(ended.out, Contains("143"));
  CHECK_THAT(ended.err, Contains("[session] saved 2 message(s)"));
}

TEST_CASE("minfer-run: a reply's thoughts are dimmed on a terminal, unless NO_COLOR or --color say otherwise") {
  MarkovModel model = MarkovModel::chain({'\n', '<', 't', 'h', 'i', 'n', 'k', '>', 'x'});
  model.chat_template = kChatMl;
  const MarkovRun markov(model);
  const std::string plain = "<think>x", dimmed = "\x1b[2m<think>x\x1b[0m";
  const std::vector<std::string> turn = {"--cnv", "--st", "-q", "--greedy", "hi"};
  const auto piped = [&](const std::string& choice) {
    std::vector<std::string> arguments = turn;
    arguments.insert(arguments.begin(), {"--color", choice});
    return markov.run(arguments).out;
  };
  CHECK(piped("auto") == plain + "\n");
  CHECK(piped("never") == plain + "\n");
  CHECK(piped("always") == dimmed + "\n");
  CHECK_THAT(markov.run({"--cnv", "--color", "red", "hi"}).err,
             Contains("--color") && Contains("must be auto, always or never, found 'red'"));

  const std::string command = program("minfer-run") + " -m " + markov.path().string() + " --cnv --st -q --greedy hi";
  const auto on_terminal = [&](const std::string& options, const std::vector<std::string>& env) {
    return run_process({"script", "-qec", command + options, "/dev/null"}, {}, env).out;
  };
  CHECK_THAT(on_terminal("", {"TERM=xterm"}), Contains(dimmed));
  CHECK_THAT(on_terminal("", {"TERM=xterm", "NO_COLOR=1"}), Contains(plain) && !Contains("\x1b"));
  CHECK_THAT(on_terminal("", {"TERM=dumb"}), Contains(plain) && !Contains("\x1b"));
  CHECK_THAT(on_terminal(" --color never", {"TERM=xterm"}), Contains(plain) && !Contains("\x1b"));
  CHECK_THAT(on_terminal(" --color always", {"TERM=xterm", "NO_COLOR=1"}), Contains(dimmed));
}
