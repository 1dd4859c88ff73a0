// minfer-eval: its formats, and its numbers against references.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "cli/programs/markov_model.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

ProcessResult eval(std::vector<std::string> arguments, std::string_view input = {}) {
  arguments.insert(arguments.begin(), program("minfer-eval"));
  return run_process(arguments, input);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string joined_ids(const json& ids) {
  std::string list;
  for (const json& id : ids) list.append(id.dump()).append(",");
  list.pop_back();
  return list;
}

}  // namespace

TEST_CASE("minfer-eval: tokenize answers line for line with the reference's ids") {
  const std::string model = model_file(kQwen2Model).string();
  std::vector<json> cases;
  for (const std::string& line : read_lines(data_dir() / "tokenizer/qwen2.jsonl")) cases.push_back(json::parse(line));
  std::string input;
  for (const json& item : cases) input += json{{"hex", item["hex"]}}.dump() + "\n";
  const auto expected = [](const json& item, const std::string& mode) -> json {
    if (item.contains("nfc") && item["nfc"].contains(mode)) return item["nfc"][mode];
    if (item.contains("nfc")) return item["nfc"]["ids_off"];
    return item.contains(mode) ? item[mode] : item["ids_off"];
  };
  for (const std::string mode : {"ids_off", "ids_on"}) {
    std::vector<std::string> arguments = {"tokenize", "-m", model};
    if (mode == "ids_on") arguments.push_back("--special");
    const auto result = eval(arguments, input);
    REQUIRE(result.exit_code == 0);
    const auto lines = lines_of(result.out);
    REQUIRE(lines.size() == cases.size());
    size_t wrong = 0;
    for (size_t i = 0; i < cases.size(); ++i) wrong += json::parse(lines[i])["ids"] != expected(cases[i], mode);
    CHECK(wrong == 0);
  }
}

TEST_CASE("minfer-eval: tokenize and detokenize are each other's inverse and read text or hex") {
  MarkovModel model = MarkovModel::always({{'a', 8}});
  model.add_bos = true;
  const MarkovRun markov(model);
  const std::string path = markov.path().string();
  CHECK(eval({"tokenize", "-m", path}, "{\"text\":\"abX\"}\n\n{\"hex\":\"f09f\"}\n").out == "{\"ids\":[263,88]}\n{\"ids\":[240,159]}\n");
  CHECK(eval({"tokenize", "-m", path, "--bos"}, "{\"text\":\"X\"}\n").out == "{\"ids\":[256,88]}\n");
  CHECK(eval({"tokenize", "-m", path, "--special"}, "{\"text\":\"<|im_end|>\"}").out == "{\"ids\":[258]}\n");
  CHECK(eval({"detokenize", "-m", path}, "{\"ids\":[263,88]}\n{\"ids\":[260]}\n{\"ids\":[]}\n").out ==
        "{\"hex\":\"616258\",\"text\":\"abX\"}\n{\"hex\":\"f09f\"}\n{\"hex\":\"\",\"text\":\"\"}\n");
}

TEST_CASE("minfer-eval: a bad line is refused by its number after the good ones") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const std::string path = markov.path().string();
  const auto refuses = [&](const std::string& command, const std::string& bad) {
    INFO(bad);
    const std::string good = command == "tokenize" ? "{\"text\":\"X\"}\n" : "{\"ids\":[88]}\n";
    const auto result = eval({command, "-m", path}, good + bad + "\n");
    CHECK(result.exit_code == 1);
    CHECK(lines_of(result.out).size() == 1);
    CHECK_THAT(result.err, Contains("error: line 2: "));
  };
  for (const char* bad : {"{", "[]", "{\"text\":1}", "{\"hex\":\"0\"}", "{\"hex\":\"0g\"}", "{\"text\":\"a\",\"x\":1}"})
    refuses("tokenize", bad);
  for (const char* bad : {"{\"ids\":[264]}", "{\"ids\":[-1]}", "{\"ids\":[1.5]}", "{\"ids\":7}", "{\"ids\":[[1]]}"})
    refuses("detokenize", bad);
  refuses("detokenize", "{\"ids\":[" + std::string(200000, '[') + std::string(200000, ']') + "]}");
}

TEST_CASE("minfer-eval: commands and options are checked") {
  CHECK(eval({}).exit_code == 2);
  CHECK(eval({"nonsense"}).exit_code == 2);
  CHECK(eval({"logits", "-m", "x"}).exit_code == 2);
  CHECK(eval({"tokenize", "-m", "x", "word"}).exit_code == 2);
  CHECK(eval({"tokenize"}).exit_code == 2);
  for (const char* ids : {"", "x", "1,", ",1", "-1", "4294967296"}) CHECK(eval({"logits", "-m", "x", "--ids", ids}).exit_code == 2);
  CHECK(eval({"logits", "-m", "x", "--ids", "1", "--last", "0"}).exit_code == 2);
  const auto too_many = eval({"logits", "-m", "x", "--ids", "1,2,3", "--last", "4"});
  CHECK(too_many.exit_code == 2);
  CHECK_THAT(too_many.err, Contains("4 rows") && Contains("3 tokens"));
  CHECK(eval({"logits", "-m", "x", "--ids", "1"}).exit_code == 1);
  CHECK(eval({"perplexity", "-m", "x", "-f", "y", "--ctx", "5"}).exit_code == 2);
  CHECK_THAT(eval({"--help"}).out, Contains("perplexity"));
  CHECK_THAT(eval({"logits", "--help"}).out, Contains("--raw"));
}

TEST_CASE("minfer-eval: render gives the text of the template and nothing else") {
  MarkovModel model = MarkovModel::always({{'a', 8}});
  model.chat_template =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"
      "{% if add_generation_prompt %}>{% endif %}{{ mood }}";
  const MarkovRun markov(model);
  const std::string path = markov.path().string();
  const auto result = eval({"render", "-m", path},
                           R"({"messages":[{"role":"user","content":"hé"}],"tools":[{"n":1}],"add_generation_prompt":true,"mood":"!"})");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "<|endoftext|>[user:hé][{\"n\": 1}]>!");
  CHECK(eval({"render", "-m", path}, R"({"messages":[],"add_generation_prompt":false})").out == "<|endoftext|>");
  CHECK(eval({"render", "-m", path}, "{}").exit_code == 1);
  CHECK(eval({"render", "-m", MarkovRun(MarkovModel()).path().string()}, "{\"messages\":[]}").exit_code == 1);
}

TEST_CASE("minfer-eval: logits of tiny models are within the limits of the reference") {
  const json manifest = json::parse(read_file(data_dir() / "tiny/manifest.json"));
  for (const std::string name : {"qwen2_untied_F32", "qwen2_Q8_0"}) {
    const auto reference = json::parse(read_file(data_dir() / ("tiny/ref/" + name + ".json")));
    // Weights in f32 with an f32 cache: float arithmetic. Otherwise the cost of 8-bit activations, measured by the reference.
    const std::string cache = name == "qwen2_Q8_0" ? "f16" : "f32";
    double limit = 1e-5;
    if (name == "qwen2_Q8_0")
      for (const json& file : manifest["files"])
        if (file["file"] == name + ".gguf") limit = 1.6 * file["sim_q8_rms_dlogit"].get<double>();
    TempDir dir;
    const std::string raw = (dir.path() / "raw.f32").string();
    double squares = 0;
    size_t count = 0;
    for (const json& sequence : reference["sequences"]) {
      const size_t n = sequence["ids"].size();
      const auto result =
          eval({"logits", "-m", (data_dir() / ("tiny/" + name + ".gguf")).string(), "-t", "1", "--kv-format", cache, "--ids",
                joined_ids(sequence["ids"]), "--last", std::to_string(n), "--top", "3", "--batch", "16", "--raw", raw});
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      const json output = json::parse(result.out);
      REQUIRE(output["rows"].size() == n);
      const size_t n_vocab = output["n_vocab"];
      const std::string bytes = read_file(raw);
      REQUIRE(bytes.size() == n * n_vocab * 4);
      std::vector<float> logits(n * n_vocab);
      std::memcpy(logits.data(), bytes.data(), bytes.size());
      for (size_t r = 0; r < sequence["rows"].size(); ++r) {
        const size_t row = sequence["rows"][r];
        const auto expected = sequence["logits"][r].get<std::vector<double>>();
        REQUIRE(expected.size() == n_vocab);
        for (size_t i = 0; i < n_vocab; ++i, ++count) squares += std::pow(logits[row * n_vocab + i] - expected[i], 2);
        const json& found = output["rows"][row];
        CHECK(found["pos"] == row);
        CHECK(found["logsumexp"].get<double>() == Approx(sequence["logsumexp"][r].get<double>()).margin(0.2));
        const auto best = static_cast<size_t>(std::max_element(logits.begin() + static_cast<ptrdiff_t>(row * n_vocab),
                                                               logits.begin() + static_cast<ptrdiff_t>((row + 1) * n_vocab)) -
                                              logits.begin()) -
                          row * n_vocab;
        CHECK(found["top"].size() == 3);
        CHECK(found["top"][0][0] == best);
        CHECK(found["top"][0][1].get<float>() == logits[row * n_vocab + best]);
      }
    }
    INFO(name);
    REQUIRE(count > 0);
    CHECK(std::sqrt(squares / static_cast<double>(count)) <= limit);
  }
}

TEST_CASE("minfer-eval: the perplexity of a text is the reference's") {
  const auto reference = json::parse(read_file(data_dir() / "ppl/ppl_qwen2.json"));
  // The first two chunks: the text up to the first line end behind their 1024 tokens.
  TempDir dir;
  const std::string text = read_file(data_dir() / "ppl/text.txt");
  const std::string beginning = (dir.path() / "text.txt").string();
  write_file(beginning, text.substr(0, text.find('\n', 4800)));
  const auto result = eval({"perplexity", "-m", model_file(kQwen2Model).string(), "-f", beginning, "--ctx", "512"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json output = json::parse(result.out);
  REQUIRE(output["chunks"] == 2);
  CHECK(output["ctx"] == 512);
  CHECK(output["scored"] == 510);
  for (size_t c = 0; c < 2; ++c)
    CHECK(std::abs(output["chunk_mean_nll"][c].get<double>() - reference["f64"]["chunk_mean_nll"][c].get<double>()) < 0.02);
  const double mean = output["mean_nll"];
  CHECK(mean == Approx((output["chunk_mean_nll"][0].get<double>() + output["chunk_mean_nll"][1].get<double>()) / 2));
  CHECK(output["ppl"].get<double>() == Approx(std::exp(mean)));
}
