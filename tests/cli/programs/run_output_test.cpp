// minfer-run: generated text, limits, stop strings, sampling, standard output and error, traces, dumps, signals.
#include <catch2/catch.hpp>
#include <set>

#include "cli/programs/markov_model.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

const std::vector<int> kAbcChain = {'C', kDef, 'G', kHi, 'J', '!'};

ProcessResult shell(const std::string& command) { return run_process({"/bin/sh", "-c", command}); }

}  // namespace

TEST_CASE("minfer-run: limits are kept to the token") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  CHECK(markov.greedy({"-n", "0", "XX"}).empty());
  CHECK(markov.greedy({"-n", "1", "XX"}) == "a");
  CHECK(markov.greedy({"-n", "3", "XX"}) == "aaa");
  CHECK(markov.greedy({"XX"}).size() == 512);
  const json zero = markov.json({"-n", "0", "XX"});
  CHECK(zero["finish"] == "length");
  CHECK(zero["n_generated"] == 0);
}

TEST_CASE("minfer-run: a full context is shifted where asked for with a notice and the text goes on") {
  MarkovModel model = MarkovModel::always({{'a', 8}});
  model.chat_template = kPlainTemplate;
  const MarkovRun markov(model);
  const auto run = markov.run({"--temp", "0", "--n-ctx", "32", "--context-shift", "on", "-n", "60", "--system", "SSSS", "XXXX"});
  REQUIRE(run.exit_code == 0);
  CHECK(run.out == std::string(60, 'a'));
  CHECK_THAT(run.err, Contains("positions 4 to 17 are dropped"));  // half of the 28 behind the system message
  const auto off = markov.run({"--temp", "0", "--n-ctx", "32", "-n", "60", "--system", "SSSS", "XXXX"});
  CHECK(off.out == std::string(24, 'a'));
  const auto endless = markov.run({"--n-ctx", "32", "--context-shift", "on", "-n", "-1", "XXXX"});
  CHECK(endless.exit_code == 1);
  CHECK_THAT(endless.err, Contains("error: n_predict -1"));
}

TEST_CASE("minfer-run: the end-of-generation token ends the text and is not part of it") {
  const MarkovRun markov(MarkovModel::chain(kAbcChain));
  CHECK(markov.greedy({"ABC"}) == "DEFGHIJ!");
  const json result = markov.json({"--greedy", "ABC"});
  CHECK(result["text"] == "DEFGHIJ!");
  CHECK(result["tokens"] == json({kDef, 'G', kHi, 'J', '!'}));
  CHECK(result["finish"] == "eog");
}

TEST_CASE("minfer-run: stop strings are cut off wherever tokens end") {
  const MarkovRun markov(MarkovModel::chain(kAbcChain));
  const auto with_stops = [&](const std::vector<std::string>& stops) {
    std::vector<std::string> arguments;
    for (const std::string& stop : stops) arguments.insert(arguments.end(), {"--stop", stop});
    arguments.push_back("ABC");
    return markov.greedy(arguments);
  };
  CHECK(with_stops({"DEFGHIJ"}).empty());
  CHECK(with_stops({"GHI"}) == "DEF");
  CHECK(with_stops({"EF", "J"}) == "D");
  CHECK(with_stops({"J", "FG"}) == "DE");
  CHECK(with_stops({"!?"}) == "DEFGHIJ!");
  CHECK(with_stops({""}) == "DEFGHIJ!");
  CHECK(markov.json({"--greedy", "--stop", "GHI", "ABC"})["finish"] == "stop");
}

TEST_CASE("minfer-run: characters that span tokens come out whole and unfinished ones as they are") {
  const MarkovRun markov(MarkovModel::chain({'X', kEmojiHead, kEmojiTail, 'Z'}));
  CHECK(markov.greedy({"X"}) == "\xF0\x9F\x98\x8AZ");
  CHECK(markov.greedy({"-n", "2", "X"}) == "\xF0\x9F\x98\x8A");
  CHECK(markov.greedy({"-n", "1", "X"}) == "\xF0\x9F");
}

TEST_CASE("minfer-run: seeds repeat and temperature 0 draws nothing") {
  const MarkovRun markov(MarkovModel::always({{'A', 2.0f}, {'B', 1.625f}}));
  const auto text = [&](const std::string& seed, const std::string& temp) {
    return markov.run({"-q", "--repeat-penalty", "1", "-n", "64", "--seed", seed, "--temp", temp, "X"}).out;
  };
  CHECK(text("7", "1").size() == 64);
  CHECK(text("7", "1") == text("7", "1"));
  CHECK(text("0", "1") == text("0", "1"));
  CHECK_THAT(text("3", "1"), Contains("A") && Contains("B"));
  std::set<std::string> texts;
  for (int seed = 1; seed <= 5; ++seed) texts.insert(text(std::to_string(seed), "1"));
  CHECK(texts.size() > 1);
  for (const char* seed : {"0", "1", "42"}) CHECK(text(seed, "0") == std::string(64, 'A'));
  // 42 is the seed without --seed.
  CHECK(markov.run({"-q", "--repeat-penalty", "1", "-n", "64", "--temp", "1", "X"}).out == text("42", "1"));
}

TEST_CASE("minfer-run: penalties count the prompt and look back as far as they are told") {
  const MarkovRun even(MarkovModel::always({{'A', 2.0f}, {'B', 1.625f}}));
  CHECK(even.greedy({"--frequency-penalty", "0.25", "-n", "8", "X"}) == "AABABABA");
  CHECK(even.greedy({"--frequency-penalty", "0.25", "-n", "8", "AAAAA"}) == "BBBBABAB");
  CHECK(even.greedy({"--presence-penalty", "0.5", "-n", "6", "X"}) == "ABAAAA");
  const MarkovRun wide(MarkovModel::always({{'A', 4.0f}, {'B', 3.0f}}));
  const std::string prompt = "A" + std::string(70, 'X');
  const auto with_window = [&](const std::vector<std::string>& window) {
    std::vector<std::string> arguments = {"-q", "--temp", "0", "--repeat-penalty", "1.5", "-n", "3"};
    arguments.insert(arguments.end(), window.begin(), window.end());
    arguments.push_back(prompt);
    return wide.run(arguments).out;
  };
  CHECK(with_window({}) == "ABA");
  CHECK(with_window({"--repeat-last-n", "256"}) == "BAA");
  CHECK(with_window({"--repeat-last-n", "-1"}) == "BAA");
  CHECK(with_window({"--repeat-last-n", "0"}) == "AAA");
}

// A prefill chunk of one row, and as long a prompt as this machine needs to have something to show.
TEST_CASE("minfer-run: a terminal sees how far a long prefill is, a pipe and a quiet run do not") {
  MarkovModel model = MarkovModel::chain({'n', 'y'});
  model.context = 131072;
  const MarkovRun markov(model);
  const std::string prompt = (markov.folder() / "long.txt").string();
  const std::string run =
      program("minfer-run") + " -m " + markov.path().string() + " --no-template --greedy -n 1 --n-ctx 130000 --n-batch 1 -f " + prompt;
  const auto on_terminal = [&](const std::string& options) {  // `script` runs it on a terminal of its own, which is its output
    return run_process({"script", "-qec", "stty cols 70; " + run + options, "/dev/null"}, {}, {"TERM=xterm"}).out;
  };
  std::string seen;
  size_t length = 4000;  // until it takes long enough to be shown
  while (seen.find("\rPrefill: ") == std::string::npos && length < 64000) {
    write_file(prompt, std::string(length *= 2, 'n'));
    seen = on_terminal("");
  }
  CHECK_THAT(seen, Contains("\rPrefill: ") && Contains("000 tokens, "));
  CHECK_THAT(seen, Contains("\r\x1b[KPrefill: "));  // erased before the next line
  CHECK_THAT(on_terminal(" -q"), !Contains("Prefill") && !Contains("\x1b"));
  write_file(prompt, std::string(2 * length, 'n'));  // surely long enough
  const auto piped = run_process({"/bin/sh", "-c", run}, {}, {"TERM=xterm"});
  CHECK(piped.out == "y");
  CHECK_THAT(piped.err, !Contains("\r") && !Contains("\x1b") && Contains("000 tokens in"));
}

TEST_CASE("minfer-run: a logit bias counts at temperature 0 and ids outside the vocabulary are refused") {
  const MarkovRun markov(MarkovModel::always({{'A', 2.0f}, {'B', 1.625f}}));
  CHECK(markov.greedy({"--logit-bias", "65:-100", "-n", "4", "X"}) == "BBBB");
  CHECK(markov.greedy({"--logit-bias", "66:5", "-n", "4", "X"}) == "BBBB");
  CHECK(markov.greedy({"--logit-bias", "65:-100,66:-100", "--logit-bias", "67:50", "-n", "4", "X"}) == "CCCC");
  write_file(markov.folder() / "run.yaml", "model: markov.gguf\nsampling: {temperature: 0, repeat_penalty: 1, logit_bias: {65: -100}}\n");
  CHECK(minfer_run({"-q", "--config", (markov.folder() / "run.yaml").string(), "-n", "4", "X"}).out == "BBBB");
  const auto outside = markov.run({"-q", "--logit-bias", "99999:1", "X"});
  CHECK(outside.exit_code == 1);
  CHECK(outside.out.empty());
  CHECK(outside.err == "error: logit_bias: token 99999 is not in the vocabulary of 264 tokens\n");
}

// The model says A after everything. Behind "AB" it said A: a repeat of "AB" with breakers left out costs 8 and C follows.
TEST_CASE("minfer-run: DRY weakens a repeat unless a breaker stands in it") {
  const MarkovRun markov(MarkovModel::always({{'A', 4.0f}, {'C', 0.0f}}));
  const auto text = [&](const std::vector<std::string>& more, const std::string& prompt) {
    std::vector<std::string> arguments = {"--dry-multiplier", "8", "-n", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back(prompt);
    return markov.greedy(arguments);
  };
  CHECK(markov.greedy({"-n", "1", "XYAXY"}) == "A");  // off by default
  CHECK(text({}, "XYAXY") == "C");
  CHECK(text({"--dry-allowed-length", "3"}, "XYAXY") == "A");
  CHECK(text({"--dry-penalty-last-n", "4"}, "XYAXY") == "A");
  CHECK(text({"--dry-penalty-last-n", "-1"}, "XYA" + std::string(70, 'Z') + "XY") == "C");
  CHECK(text({}, "XYA" + std::string(70, 'Z') + "XY") == "A");
  for (const char* breaker : {"\n", ":", "\"", "*"}) CHECK(text({}, "X" + std::string(breaker) + "AX" + breaker) == "A");
  CHECK(text({"--dry-sequence-breaker", "none"}, "X:AX:") == "C");
  CHECK(text({"--dry-sequence-breaker", "Y"}, "XYAXY") == "A");
  CHECK(text({"--dry-sequence-breaker", "XY"}, "XYAXY") == "A");  // two tokens
  CHECK(text({"--dry-sequence-breaker", "XYZ"}, "XYAXY") == "C");
  const auto blind = markov.run({"-q", "--dry-multiplier", "1", "--dry-penalty-last-n", "0", "X"});
  CHECK(blind.exit_code == 2);
  CHECK_THAT(blind.err, Contains("dry_penalty_last_n is 0"));
}

TEST_CASE("minfer-run: every sampling option changes what is drawn and thread counts do not") {
  MarkovModel model = MarkovModel::always({{'A', 4.0f}, {'B', 3.5f}, {'C', 3.0f}, {'D', 2.5f}, {'E', 1.0f}, {'F', 0.0f}});
  model.rest = -30;
  const MarkovRun markov(model);
  const auto text = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"-q", "-m", markov.path().string(), "--temp", "1", "--repeat-penalty", "1", "-n", "64"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back("X");
    const ProcessResult result = minfer_run(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out.size() == 64);
    return result.out;
  };
  const std::string plain = text({"-t", "1"});
  CHECK(text({"-t", "3"}) == plain);
  const std::vector<std::vector<std::string>> steps = {{"--typical", "0.4"},
                                                       {"--top-n-sigma", "0.5"},
                                                       {"--xtc-probability", "1", "--xtc-threshold", "0.1"},
                                                       {"--mirostat", "1", "--mirostat-tau", "1", "--mirostat-m", "3"},
                                                       {"--mirostat", "2", "--mirostat-tau", "1", "--mirostat-eta", "0.5"}};
  std::set<std::string> texts = {plain};
  for (const auto& step : steps) texts.insert(text(step));
  CHECK(texts.size() == steps.size() + 1);
  CHECK(text({"--top-n-sigma", "0.5"}).find('D') == std::string::npos);
  CHECK(text({"--xtc-probability", "1", "--xtc-threshold", "0.1"}).find('A') == std::string::npos);
  const std::vector<std::vector<std::string>> off = {
      {"--typical", "1"}, {"--top-n-sigma", "0"}, {"--xtc-probability", "0"}, {"--mirostat", "0"}, {"--dry-multiplier", "0"}};
  for (const auto& step : off) CHECK(text(step) == plain);
}

TEST_CASE("minfer-run: min-p is applied before the temperature") {
  MarkovModel model = MarkovModel::always({{'A', 2.0f}, {'B', 0.0f}});
  model.rest = -30;
  const MarkovRun markov(model);
  const std::vector<std::string> rest = {"--repeat-penalty", "1", "--top-k", "0", "--top-p", "1", "-n", "64", "X"};
  std::vector<std::string> arguments = {"-q", "--temp", "4", "--min-p", "0.2"};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  CHECK(markov.run(arguments).out == std::string(64, 'A'));
  arguments[4] = "0";
  CHECK_THAT(markov.run(arguments).out, Contains("B"));
}

TEST_CASE("minfer-run: standard output holds the text alone and headers and rates are on standard error") {
  const MarkovRun markov(MarkovModel::chain(kAbcChain));
  const auto result = markov.run({"--greedy", "ABC"});
  CHECK(result.out == "DEFGHIJ!");
  for (const char* part :
       {"Loading model: ", "File: ", " in 1 part(s)", "GGUF: ", "Model loaded.", "Vocabulary: 264 tokens", "Prompt: 3 tokens",
        "Prefill: 3 tokens in ", "---\n", "Generated: 5 tokens in ", "Total:     8 tokens in ", "Stopped: end of generation"})
    CHECK_THAT(result.err, Contains(part));
  CHECK(markov.run({"-q", "--greedy", "ABC"}).err.empty());
}

TEST_CASE("minfer-run: the JSON object tells of the run and counts graph builds") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const json result = markov.json({"--n-batch", "4", "-n", "6", std::string(10, 'X')});
  CHECK(result["n_prompt"] == 10);
  CHECK(result["n_generated"] == 6);
  CHECK(result["finish"] == "length");
  // Chunks (4, 0) (4, 0) (2, 1), then five steps (1, 1): four shapes at most, three distinct here.
  CHECK(result["builds"] == 3);
  CHECK(result["reuses"] == 5);
  CHECK(result["remaps"].is_number());
  CHECK(result["decode_ts"].get<double>() > 0);
  CHECK(result["model"] == "markov");
}

TEST_CASE("minfer-run: bytes that are not UTF-8 leave the JSON object valid") {
  const MarkovRun markov(MarkovModel::chain({'X', kEmojiHead, 'Z'}));
  const json result = markov.json({"--greedy", "X"});
  CHECK(result["tokens"] == json({kEmojiHead, 'Z'}));
  CHECK_THAT(result["text"].get<std::string>(), Contains("Z"));
}

TEST_CASE("minfer-run: traces are written when the environment asks") {
  const MarkovRun markov(MarkovModel::chain(kAbcChain));
  const auto timing = markov.run({"-q", "--greedy", "ABC"}, {}, {"MINFER_TIMING=1"});
  CHECK_THAT(timing.err, Contains("[MINFER_TIMING] over 5 tokens: sample ") && Contains("2 builds, 4 reuses"));
  const auto rebuild = markov.run({"-q", "--greedy", "ABC"}, {}, {"MINFER_REBUILD_TRACE=1"});
  CHECK_THAT(rebuild.err, Contains("3 tokens, 1 rows of logits") && Contains("1 tokens, 1 rows of logits") &&
                              Contains(" barriers, 4.0 per layer"));  // of the decode graph: one KV head and one thread
  CHECK_THAT(timing.err, !Contains("barriers"));
  const auto graph = markov.run({"-q", "-n", "2", "--greedy", "ABC"}, {}, {"MINFER_GRAPH_TRACE=1"});
  CHECK_THAT(graph.err, Contains("[graph] split 0: cpu nodes ") && Contains("[graph] op fused_ffn backend cpu x1"));
  const auto unfused =
      markov.run({"-q", "-n", "2", "--greedy", "ABC"}, {}, {"MINFER_GRAPH_TRACE=1", "MINFER_NO_FUSE_FFN=1", "MINFER_NO_FUSE_QKV=1"});
  CHECK(unfused.out == graph.out);
  CHECK_THAT(unfused.err, !Contains("fused"));
  const auto file = markov.folder() / "tokens.txt";
  CHECK(markov.run({"-q", "--greedy", "-n", "2", "ABC"}, {}, {"MINFER_TOKEN_TRACE=" + file.string()}).exit_code == 0);
  CHECK(read_file(file) == "0\t65\n1\t66\n2\t67\n3\t259\n4\t71\n");
  CHECK(markov.run({"-q", "ABC"}, {}, {"MINFER_TOKEN_TRACE=/nonexistent/x"}).exit_code == 1);
}

TEST_CASE("minfer-run: graphs are dumped without a prompt and name what runs where") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const auto dot = markov.folder() / "graph.dot", file = markov.folder() / "graph.json";
  const auto result = markov.run({"-q", "--dump-graph", dot.string(), "--dump-graph-json", file.string()});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.empty());
  CHECK_THAT(read_file(dot), Catch::Matchers::StartsWith("digraph G {") && Contains("cpu"));
  const json graph = json::parse(read_file(file));
  CHECK(graph["format"] == "minfer-graph");
  CHECK(graph["version"] == 1);
  CHECK(graph["kind"] == "decode");
  CHECK(graph["outputs"].size() == 1);
  std::set<std::string> names = {"null"};
  for (const json& input : graph["inputs"]) names.insert(input["name"]);
  bool reads_embedding = false;
  for (size_t i = 0; i < graph["nodes"].size(); ++i) {
    const json& node = graph["nodes"][i];
    CHECK(node["id"] == i);
    CHECK(node["backend"] == "cpu");
    for (const json& source : node["src"]) {
      if (source.is_null()) continue;
      const std::string name = source;
      reads_embedding = reads_embedding || name == "token_embd.weight";
      const bool weight = name.find(".weight") != std::string::npos || name.find(".bias") != std::string::npos;
      CHECK((weight || names.count(name.substr(0, name.find('.'))) == 1));
    }
    names.insert(node["name"]);
  }
  CHECK(reads_embedding);
  CHECK(markov.run({"-q", "--dump-graph", "/nonexistent/x.dot"}).exit_code == 1);
}

TEST_CASE("minfer-run: metadata is printed to standard error and the run goes on") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const auto result = markov.run({"-q", "--meta", "-n", "1", "--greedy", "x"});
  CHECK(result.out == "a");
  CHECK_THAT(result.err, Contains("qwen2.embedding_length = 512") && Contains("blk.0.attn_q.weight [512, 512] Q8_0"));
  MarkovModel chatty = MarkovModel::always({{'a', 8}});
  chatty.chat_template = "{# " + std::string(500, '.') + " #}" + std::string(kPlainTemplate);
  const auto whole = MarkovRun(chatty).run({"-q", "--meta", "-n", "1", "--greedy", "x"});
  CHECK_THAT(whole.err, Contains(chatty.chat_template));  // a chat template is shown as a whole
}

TEST_CASE("minfer-run: Ctrl-C and SIGTERM end the generation with what there is") {
  MarkovModel model = MarkovModel::always({{'a', 8}});
  model.context = 200000;
  const MarkovRun markov(model);
  const std::map<std::string, int> codes = {{"INT", 130}, {"TERM", 143}};
  for (const auto& [signal, code] : codes) {
    // --foreground: without it the program gets the signal twice, once as the child and once with its group, and a second one ends it.
    const auto result = shell("exec timeout --foreground --preserve-status -s " + signal + " 2 " + program("minfer-run") + " -m " +
                              markov.path().string() + " -t 1 --greedy -n -1 --n-ctx 200000 x");
    INFO(signal << ": " << result.err);
    CHECK(result.exit_code == code);
    CHECK(result.out.size() > 1);
    CHECK(result.out.find_first_not_of('a') == std::string::npos);
    CHECK_THAT(result.err, Contains("Stopped: interrupted"));
  }
}

TEST_CASE("minfer-run: a reader that goes away ends the run in silence and a full disk is an error") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const std::string command = program("minfer-run") + " -q -m " + markov.path().string() + " -t 1 --greedy -n 3000 x";
  const auto pipe = shell(command + " | head -c 5");
  CHECK(pipe.exit_code == 0);
  CHECK(pipe.out == "aaaaa");
  CHECK(pipe.err.empty());
  const auto full = shell(command + " > /dev/full");
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, Contains("error: standard output: "));
}

TEST_CASE("minfer-run: what programs print about themselves is not lost unseen on a full disk") {
  for (const char* command : {"minfer-run --help", "minfer-run --version", "minfer-eval --help", "minfer-eval --version",
                              "minfer-eval logits --help", "minfer-bench --help"}) {
    INFO(command);
    const auto full = shell(program(command) + " > /dev/full");
    CHECK(full.exit_code == 1);
    CHECK_THAT(full.err, Contains("error: standard output: "));
  }
}
