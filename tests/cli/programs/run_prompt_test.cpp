// minfer-run: where prompts come from, templates, control tokens, BOS, context size.
#include <catch2/catch.hpp>

#include "cli/programs/markov_model.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::string_view kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.content | trim }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}";

}  // namespace

TEST_CASE("minfer-run: prompt files are taken byte for byte and standard input loses one newline") {
  const MarkovRun markov(MarkovModel::always({{'A', 8}}));
  const auto file = markov.folder() / "prompt.txt";
  const auto tokens_of_file = [&](std::string_view bytes) {
    write_file(file, bytes);
    return markov.json({"-n", "0", "-f", file.string()})["n_prompt"].get<int>();
  };
  CHECK(tokens_of_file("A\r\nB\n") == 5);
  CHECK(tokens_of_file("\xEF\xBB\xBF"
                       "A") == 1);
  CHECK(tokens_of_file("A") == 1);
  CHECK(tokens_of_file("\xE6\xAD") == 2);  // not UTF-8
  CHECK(tokens_of_file(std::string_view("\0x", 2)) == 2);
  CHECK(markov.json({"-n", "0"}, "A\r\nB\n")["n_prompt"] == 4);
  CHECK(markov.json({"-n", "0"}, "A\n\n")["n_prompt"] == 2);
  CHECK(markov.json({"-n", "0", "one", "two"})["n_prompt"] == 7);
  CHECK(markov.json({"-n", "0", "--", "-x", "--json"})["n_prompt"] == 9);
}

TEST_CASE("minfer-run: an empty prompt is refused unless BOS begins the text") {
  MarkovModel model = MarkovModel::always({{'A', 8}});
  const MarkovRun without(model);
  const auto result = without.run({"-q", ""});
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Contains("the prompt is empty"));
  const auto file = without.folder() / "empty.txt";
  write_file(file, "");
  CHECK(without.run({"-q", "-f", file.string()}).err == result.err);
  model.add_bos = true;
  const MarkovRun with(model);
  CHECK(with.greedy({"-n", "2", ""}) == "AA");
}

TEST_CASE("minfer-run: BOS stands once at the front where the model wants one") {
  MarkovModel model = MarkovModel::always({{'A', 8}});
  model.add_bos = true;
  CHECK(MarkovRun(model).json({"-n", "0", "XY"})["n_prompt"] == 3);
  model.chat_template = "<|endoftext|>{{ messages[0].content }}";
  const MarkovRun with_template(model);
  CHECK(with_template.json({"-n", "0", "XY"})["n_prompt"] == 3);
  CHECK(with_template.json({"-n", "0", "--no-template", "XY"})["n_prompt"] == 3);
}

TEST_CASE("minfer-run: the template of the file is applied unless it is switched off") {
  MarkovModel model = MarkovModel::always({{'A', 8}});
  model.chat_template = kChatMl;
  const MarkovRun markov(model);
  CHECK(markov.json({"-n", "0", "XY"})["n_prompt"] == 5);
  CHECK(markov.json({"-n", "0", "--system", "Z", "XY"})["n_prompt"] == 8);
  CHECK(markov.json({"-n", "0", "--no-template", "XY"})["n_prompt"] == 2);
  CHECK_THAT(MarkovRun(MarkovModel::always({{'A', 8}})).run({"-n", "0", "XY"}).err, Contains("no chat template"));
}

TEST_CASE("minfer-run: another template is chosen by name or by file and an unknown name lists what there is") {
  MarkovModel model = MarkovModel::always({{'A', 8}});
  model.chat_template = kPlainTemplate;
  const MarkovRun markov(model);
  // <|im_start|>user\nXY<|im_end|>\n<|im_start|>assistant\n
  CHECK(markov.json({"-n", "0", "--chat-template", "chatml", "XY"})["n_prompt"] == 1 + 5 + 2 + 1 + 1 + 1 + 10);
  CHECK(markov.json({"-n", "0", "--chat-template", "auto", "XY"})["n_prompt"] == 2);
  CHECK(markov.json({"-n", "0", "--chat-template", "off", "XY"})["n_prompt"] == 2);
  write_file(markov.folder() / "my.jinja", "<<{{ messages[0].content }}>>");
  CHECK(markov.json({"-n", "0", "--chat-template", (markov.folder() / "my.jinja").string(), "XY"})["n_prompt"] == 6);
  write_file(markov.folder() / "run.yaml", "model: markov.gguf\nprompt: {template: my.jinja}\ngeneration: {n_predict: 0}\n");
  CHECK_THAT(minfer_run({"--config", (markov.folder() / "run.yaml").string(), "XY"}).err, Contains("Prompt: 6 tokens"));

  const auto unknown = markov.run({"-q", "--chat-template", "chatlm", "XY"});
  CHECK(unknown.exit_code == 1);
  CHECK_THAT(unknown.err,
             Contains("error: there is no chat template 'chatlm'; there are chatml, deepseek, gemma, llama3, mistral, phi3, zephyr"));
  CHECK_THAT(markov.run({"-q", "--chat-template", "./none.jinja", "XY"}).err, Contains("none.jinja: No such file"));
  CHECK(markov.run({"-q", "--chat-template", "chatml", "--no-template", "XY"}).exit_code == 2);
  write_file(markov.folder() / "bad.jinja", "a\n{% include 'x' %}");
  CHECK_THAT(markov.run({"-q", "--chat-template", (markov.folder() / "bad.jinja").string(), "XY"}).err,
             Contains("bad.jinja', line 2: tag 'include' is not supported"));
  write_file(markov.folder() / "endless.jinja", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
  CHECK_THAT(markov.run({"-q", "--chat-template", (markov.folder() / "endless.jinja").string(), "XY"}).err,
             Contains("endless.jinja', line 1") && Contains("max_steps"));
}

// The clock of the machine in its time zone, with English names whatever the locale. Tried again where a minute ends in between.
TEST_CASE("minfer-run: a template's date is the local one in English") {
  MarkovModel model = MarkovModel::always({{'A', 8}});
  model.chat_template = "{{ strftime_now('%Y-%m-%d %H:%M|%d %b %Y|%j|%%') }}";
  const MarkovRun markov(model);
  for (const char* zone : {"UTC", "Asia/Tokyo"}) {
    const std::vector<std::string> env = {std::string("TZ=") + zone, "LC_ALL=de_DE.UTF-8"};
    const auto now = [&] {
      return run_process({"/bin/sh", "-c", std::string("TZ=") + zone + " LC_ALL=C date '+%Y-%m-%d %H:%M|%d %b %Y|%j|%%'"}).out;
    };
    std::string before, after, text;
    for (int attempt = 0; attempt < 3; ++attempt) {
      before = now();
      text = run_process({program("minfer-eval"), "render", "-m", markov.path().string()}, R"({"messages": []})", env).out + "\n";
      after = now();
      if (before == after) break;
    }
    CHECK(text == after);
  }
}

TEST_CASE("minfer-run: control tokens inside a message are plain text") {
  MarkovModel model = MarkovModel::always({{'A', 8}});
  model.chat_template = kChatMl;
  const MarkovRun markov(model);
  CHECK(markov.json({"-n", "0", "<|im_end|>"})["n_prompt"] == 13);
  CHECK(markov.json({"-n", "0", " a<|im_start|>c "})["n_prompt"] == 17);
  CHECK(markov.json({"-n", "0", "--system", "<|im_end|>", "<"})["n_prompt"] == 16);
  CHECK(markov.json({"-n", "0", "--no-template", "<|im_end|>"})["n_prompt"] == 1);
  // Text that only becomes a control token together with what the template puts around it.
  model.chat_template = "<|im_{{ messages[0].content }}_end|>";
  const MarkovRun joined(model);
  CHECK(joined.json({"-n", "0", "start|>x<|im"})["n_prompt"] == 23);
}

TEST_CASE("minfer-run: what a template refuses ends with 1 and its words") {
  MarkovModel model = MarkovModel::always({{'A', 8}});
  model.chat_template =
      "{% if messages[0].role == 'system' %}{{ raise_exception('no system role here') }}{% endif %}{{ messages[0].content }}";
  const MarkovRun markov(model);
  const auto result = markov.run({"-q", "--system", "s", "XY"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains("no system role here"));
  CHECK(markov.greedy({"-n", "1", "XY"}) == "A");
}

TEST_CASE("minfer-run: a context the user gave is a limit and the default gives way to the prompt") {
  MarkovModel model = MarkovModel::always({{'a', 8}});
  model.context = 8192;
  const MarkovRun markov(model);
  const std::string ten(10, 'X');
  CHECK(markov.greedy({"--n-ctx", "256", "-n", "-1", ten}) == std::string(246, 'a'));
  const auto full = markov.run({"--n-ctx", "12", "-n", "-1", ten});
  CHECK(full.exit_code == 0);
  CHECK(full.out == "aa");
  CHECK_THAT(full.err, Contains("context full (n_ctx 12)"));
  const auto too_long = markov.run({"-q", "--n-ctx", "9", ten});
  CHECK(too_long.exit_code == 1);
  CHECK(too_long.out.empty());
  CHECK_THAT(too_long.err, Contains("10") && Contains("9"));
  CHECK(markov.greedy({"--n-ctx", "10", ten}).empty());

  const auto raised = markov.run({"-n", "3", std::string(4200, 'X')});
  CHECK(raised.exit_code == 0);
  CHECK_THAT(raised.err, Contains("raised to 4200"));
  CHECK(markov.json({"-n", "0", "--n-ctx", "9000", "X"})["n_ctx"] == 8192);
  CHECK(markov.run({"-q", std::string(8193, 'X')}).exit_code == 1);
}

TEST_CASE("minfer-run: standard input that cannot be read is not taken for a missing prompt") {
  const MarkovRun markov(MarkovModel::always({{'A', 8}}));
  const auto with = [&](const std::string& input) {
    return run_process({"/bin/sh", "-c", program("minfer-run") + " -q -m " + markov.path().string() + " " + input});
  };
  const auto folder = with("< /");
  CHECK(folder.exit_code == 1);
  CHECK_THAT(folder.err, Contains("error: standard input: "));
  for (const char* input : {"< /dev/null", "<&-"}) {
    const auto missing = with(input);
    CHECK(missing.exit_code == 2);
    CHECK_THAT(missing.err, Contains("no prompt"));
  }
}
