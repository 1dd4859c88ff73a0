// Every key, limit, default and refusal of the configuration; machines; options over files.
#include "config/config.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "support/support.hpp"

using namespace minfer;

namespace {

const MachineFacts kMachine = {"gpu-7.example.org", "linux"};

Result<Config> read(std::string_view text, const MachineFacts& machine = kMachine) {
  auto document = yaml::parse_yaml(text, "c.yaml");
  if (!document.ok()) return document.error();
  return read_config(*document, "/base/dir", machine);
}

Config accepted(std::string_view text, const MachineFacts& machine = kMachine) {
  auto config = read(text, machine);
  if (!config.ok()) FAIL(config.error().text);
  return *std::move(config);
}

std::string refusal(std::string_view text) {
  const auto config = read(text);
  REQUIRE_FALSE(config.ok());
  return config.error().text;
}

}  // namespace

TEST_CASE("config: the defaults are those the manual names", "[config]") {
  const Config c;
  CHECK(c.model.text.empty());
  CHECK(c.architecture == "auto");
  CHECK(c.backends.empty());
  CHECK_FALSE(c.context.n_ctx);
  CHECK(kDefaultContextTokens == 4096);
  CHECK(c.context.kv_format == KvFormatChoice::kAuto);
  CHECK(c.context.n_batch == 512);
  CHECK(c.context.shift == ContextShift::kOff);
  CHECK(c.generation.n_predict == 512);
  CHECK(c.generation.stop.empty());
  CHECK(c.sampling.seed == 42);
  CHECK(c.output.color == ColorChoice::kAuto);
  CHECK(c.sampling.temperature == 0.8f);
  CHECK(c.sampling.top_k == 40);
  CHECK(c.sampling.top_p == 0.95f);
  CHECK(c.sampling.min_p == 0.0f);
  CHECK(c.sampling.repeat_penalty == 1.1f);
  CHECK(c.sampling.frequency_penalty == 0.0f);
  CHECK(c.sampling.presence_penalty == 0.0f);
  CHECK(c.sampling.repeat_last_n == 64);
  CHECK(c.sampling.typical_p == 1.0f);
  CHECK(c.sampling.xtc_probability == 0.0f);
  CHECK(c.sampling.xtc_threshold == 0.5f);
  CHECK(c.sampling.top_n_sigma == 0.0f);
  CHECK(c.sampling.logit_bias.empty());
  CHECK(c.sampling.dry_multiplier == 0.0f);
  CHECK(c.sampling.dry_base == 1.75f);
  CHECK(c.sampling.dry_allowed_length == 2);
  CHECK(c.sampling.dry_penalty_last_n == 64);
  CHECK(c.sampling.dry_sequence_breakers == std::vector<std::string>{"\n", ":", "\"", "*"});
  CHECK(c.sampling.mirostat == 0);
  CHECK(c.sampling.mirostat_tau == 5.0f);
  CHECK(c.sampling.mirostat_eta == 0.1f);
  CHECK(c.sampling.mirostat_m == 100);
  CHECK(c.prompt.chat_template == PromptTemplate::kAuto);
  CHECK_FALSE(c.prompt.system);
  CHECK_FALSE(c.plugins.allow_unsafe_paths);
}

TEST_CASE("config: reads every key", "[config]") {
  const Config c = accepted(R"(model: models/m.gguf
architecture: qwen2
backends:
  - {name: cuda, gpu_layers: 20, strict: true, device: 1}
  - {name: cpu, gpu_layers: auto, threads: 8}
  - {name: null-backend, gpu_layers: all}
  - opencl
context: {n_ctx: 1000, kv_format: q8_0, n_batch: 64, shift: on}
generation: {n_predict: -1, stop: ["\n\n", '###']}
sampling: {seed: 7, temperature: 0, top_k: 0, top_p: 1, min_p: 0.5, repeat_penalty: 1,
           frequency_penalty: -0.5, presence_penalty: 2, repeat_last_n: -1, typical_p: 0.25, xtc_probability: 0.125, xtc_threshold: 0.375,
           top_n_sigma: 1.5, logit_bias: {5: -100, 17: 2.5}, dry_multiplier: 0.75, dry_base: 3, dry_allowed_length: 4,
           dry_penalty_last_n: 10, dry_sequence_breakers: ["; "], mirostat: 2, mirostat_tau: 6, mirostat_eta: 0.25, mirostat_m: 50}
prompt: {template: off, system: "Be brief."}
output: {color: never}
plugins: {dirs: [p, /abs/../q], files: [../x.so], allow_unsafe_paths: true}
)");
  CHECK(c.model.text == "models/m.gguf");
  CHECK(c.model.base_dir == "/base/dir");
  CHECK(c.model.where == "c.yaml:1:8");
  CHECK(c.architecture == "qwen2");
  REQUIRE(c.backends.size() == 4);
  CHECK(c.backends[0].name == "cuda");
  CHECK(c.backends[0].gpu_layers == GpuLayers{GpuLayers::Mode::kCount, 20});
  CHECK(c.backends[0].strict);
  CHECK(c.output.color == ColorChoice::kNever);
  CHECK(c.backends[0].where == "c.yaml:4:5");
  REQUIRE(c.backends[0].options.children.size() == 1);
  CHECK(c.backends[0].options.find("device")->text == "1");
  CHECK(c.backends[0].options.find("device")->error("no such device").text == "c.yaml:4:56: backends[0].device: no such device");
  CHECK(c.backends[1].gpu_layers.mode == GpuLayers::Mode::kAuto);
  CHECK_FALSE(c.backends[1].strict);
  CHECK(c.backends[1].options.find("threads")->text == "8");
  CHECK(c.backends[2].gpu_layers.mode == GpuLayers::Mode::kAll);
  CHECK(c.backends[3].name == "opencl");
  CHECK(c.backends[3].options.kind == yaml::Node::Kind::kMapping);
  CHECK(c.backends[3].options.children.empty());
  CHECK(c.context == ContextConfig{1000, KvFormatChoice::kQ8_0, 64, ContextShift::kOn});
  CHECK(c.generation == GenerationConfig{-1, {"\n\n", "###"}});
  CHECK(c.sampling == SamplingConfig{7,    0.0f,  0,    0.25f, 1.0f,  0.5f, 0.125f, 0.375f, 1.5f,   {{5, -100.0f}, {17, 2.5f}},
                                     1.0f, -0.5f, 2.0f, -1,    0.75f, 3.0f, 4,      10,     {"; "}, 2,
                                     6.0f, 0.25f, 50});
  CHECK(c.prompt == PromptConfig{PromptTemplate::kOff, "Be brief."});
  CHECK(c.plugins == PluginConfig{{"/base/dir/p", "/q"}, {"/base/x.so"}, true});
}

TEST_CASE("config: an n_ctx of the user is told from the default", "[config]") {
  CHECK(accepted("context: {n_ctx: 4096}").context.n_ctx == 4096u);
  CHECK_FALSE(accepted("context: {n_ctx: auto}").context.n_ctx);
  CHECK_FALSE(accepted("context: {n_batch: 1}").context.n_ctx);
}

TEST_CASE("config: refuses values beyond each limit and takes the limits themselves", "[config]") {
  struct Case {
    std::string section, key;
    std::vector<std::string> good, bad;
    std::string expected;
  };
  const std::string int32 = "2147483647", too_much = "2147483648";
  const std::vector<Case> cases = {
      {"context", "n_ctx", {"1", int32}, {"0", "-1", too_much}, "must be between 1 and 2147483647, found "},
      {"context", "n_batch", {"1", "65536"}, {"0", "-1", "65537"}, "must be between 1 and 65536, found "},
      {"generation", "n_predict", {"-1", "0", int32}, {"-2", too_much}, "must be between -1 and 2147483647, found "},
      {"sampling",
       "seed",
       {"0", "18446744073709551615"},
       {"-1", "18446744073709551616"},
       "must be between 0 and 18446744073709551615, found "},
      {"sampling", "temperature", {"0", "0.0", "100"}, {"-0.1", "-1"}, "must be at least 0, found "},
      {"sampling", "top_k", {"0", int32}, {"-1", too_much}, "must be between 0 and 2147483647, found "},
      {"sampling", "top_p", {"0", "1", "0.5"}, {"-0.01", "1.01"}, "must be between 0 and 1, found "},
      {"sampling", "min_p", {"0", "1"}, {"-0.01", "1.01"}, "must be between 0 and 1, found "},
      {"sampling", "repeat_penalty", {"0.5", "1", "5"}, {"0", "-0.01"}, "must be at least 1e-06, found "},
      {"sampling", "frequency_penalty", {"-3e38", "3e38"}, {"4e38", "-4e38"}, ""},
      {"sampling", "presence_penalty", {"-3e38", "3e38"}, {"4e38", "-4e38"}, ""},
      {"sampling", "repeat_last_n", {"-1", "0", "1048576"}, {"-2", "1048577"}, "must be between -1 and 1048576, found "},
      {"sampling", "typical_p", {"0", "1"}, {"-0.01", "1.01"}, "must be between 0 and 1, found "},
      {"sampling", "xtc_probability", {"0", "1"}, {"-0.01", "1.01"}, "must be between 0 and 1, found "},
      {"sampling", "xtc_threshold", {"0", "0.5"}, {"-0.01", "0.51"}, "must be between 0 and 0.5, found "},
      {"sampling", "top_n_sigma", {"0", "3"}, {"-1"}, "must be at least 0, found "},
      {"sampling", "dry_multiplier", {"0", "5"}, {"-0.1"}, "must be at least 0, found "},
      {"sampling", "dry_base", {"1", "4"}, {"0.99"}, "must be at least 1, found "},
      {"sampling", "dry_allowed_length", {"1", int32}, {"0", too_much}, "must be between 1 and 2147483647, found "},
      {"sampling", "dry_penalty_last_n", {"-1", "0", "1048576"}, {"-2", "1048577"}, "must be between -1 and 1048576, found "},
      {"sampling", "mirostat", {"0", "1", "2"}, {"-1", "3"}, "must be between 0 and 2, found "},
      {"sampling", "mirostat_tau", {"0.1", "9"}, {"0", "-1"}, "must be at least 1e-06, found "},
      {"sampling", "mirostat_eta", {"0.1", "9"}, {"0", "-1"}, "must be at least 1e-06, found "},
      {"sampling", "mirostat_m", {"1", int32}, {"0", too_much}, "must be between 1 and 2147483647, found "},
      {"sampling", "temperature", {}, {".inf", ".nan", "\"0.8\"", "warm"}, "must be a number, found "},
      {"sampling", "top_k", {}, {"0x10", "4e1", "1.5", "\"40\""}, "must be a whole number, found "},
      {"context", "n_batch", {}, {"0512"}, "a number may not begin with 0, found "},
      {"context", "kv_format", {"auto", "f32", "f16", "q8_0"}, {"F16", "q4_0", "16"}, "must be auto, f32, f16 or q8_0, found "},
      {"context", "shift", {"off", "on"}, {"true", "yes"}, "must be off or on, found "},
      {"prompt",
       "template",
       {"auto", "off", "chatml", "./x", "x.jinja"},
       {"a b", "\"\""},
       "must be auto, off, the name of a template or a file "},
      {"plugins", "allow_unsafe_paths", {"true", "false"}, {"yes", "on", "1"}, "must be true or false, found "},
      {"generation", "stop", {"[]", "[a, b]"}, {"a"}, "must be a list of texts such as"},
  };
  for (const Case& c : cases) {
    const std::string column = std::to_string(c.section.size() + c.key.size() + 6);
    for (const std::string& good : c.good) {
      INFO(c.section << "." << c.key << ": " << good);
      CHECK(read(c.section + ": {" + c.key + ": " + good + "}").ok());
    }
    for (const std::string& bad : c.bad) {
      const std::string text = refusal(c.section + ": {" + c.key + ": " + bad + "}");
      INFO(text);
      CHECK(text.find("c.yaml:1:" + column + ": " + c.section + "." + c.key + ": " + c.expected) == 0);
    }
  }
}

TEST_CASE("config: a DRY penalty that sees no token is refused", "[config]") {
  CHECK(refusal("sampling: {dry_multiplier: 0.8, dry_penalty_last_n: 0}").find("dry_penalty_last_n is 0, where DRY sees nothing") !=
        std::string::npos);
  CHECK(accepted("sampling: {dry_multiplier: 0, dry_penalty_last_n: 0}").sampling.dry_penalty_last_n == 0);
}

TEST_CASE("config: a logit bias is a mapping in a file and a list in an option", "[config]") {
  using Biases = std::map<int32_t, float>;
  CHECK(accepted("sampling: {logit_bias: {65: -100, 66: 5}}").sampling.logit_bias == Biases{{65, -100.0f}, {66, 5.0f}});
  CHECK(accepted("sampling: {logit_bias: {}}").sampling.logit_bias.empty());
  CHECK(refusal("sampling: {logit_bias: {65: x}}") ==
        "c.yaml:1:29: sampling.logit_bias.65: the bias of token 65 must be a number from -100 to 100, found 'x'");
  CHECK_THAT(refusal("sampling: {logit_bias: {65: 100.5}}"), Catch::Contains("must be a number from -100 to 100, found '100.5'"));
  CHECK_THAT(refusal("sampling: {logit_bias: {65: '5'}}"), Catch::Contains("must be a number from -100 to 100"));
  CHECK_THAT(refusal("sampling: {logit_bias: {A: 5}}"), Catch::Contains("'A' is not a token id"));
  CHECK_THAT(refusal("sampling: {logit_bias: {-1: 5}}"), Catch::Contains("'-1' is not a token id"));
  CHECK_THAT(refusal("sampling: {logit_bias: 5}"), Catch::Contains("must be a mapping {ID: BIAS}"));

  Config c;
  const auto set = [&](const std::vector<std::string>& values) {
    const Status status = apply_override_list(c, "sampling.logit_bias", values, "--logit-bias", "/cwd");
    return status.ok() ? std::string() : status.error().text;
  };
  CHECK(set({"65:-100,66:5", "7:0.5"}).empty());
  CHECK(c.sampling.logit_bias == Biases{{7, 0.5f}, {65, -100.0f}, {66, 5.0f}});
  CHECK(set({"65"}) == "--logit-bias: sampling.logit_bias[0]: must be ID:BIAS, for example 42:-100, found '65'");
  CHECK_THAT(set({"65:1,"}), Catch::Contains("must be ID:BIAS"));
  CHECK_THAT(set({"65:x"}), Catch::Contains("found 'x'"));
  CHECK_THAT(set({"x:1"}), Catch::Contains("'x' is not a token id"));
  CHECK_THAT(set({"1:1", "1:2"}), Catch::Contains("[1]: token 1 is given twice"));
  CHECK(c.sampling.logit_bias.size() == 3);
}

TEST_CASE("config: the sequence breakers of DRY can be replaced and left out", "[config]") {
  Config c = accepted("sampling: {dry_sequence_breakers: []}");
  CHECK(c.sampling.dry_sequence_breakers.empty());
  CHECK(apply_override_list(c, "sampling.dry_sequence_breakers", {"a", "none"}, "--dry-sequence-breaker", "/cwd").ok());
  CHECK(c.sampling.dry_sequence_breakers == std::vector<std::string>{"a", "none"});
  CHECK(apply_override_list(c, "sampling.dry_sequence_breakers", {"none"}, "--dry-sequence-breaker", "/cwd").ok());
  CHECK(c.sampling.dry_sequence_breakers.empty());
}

TEST_CASE("config: refuses unknown and misplaced keys with the nearest name", "[config]") {
  CHECK(refusal("sampling:\n  temprature: 0\n") == "c.yaml:2:3: sampling.temprature: unknown key; did you mean 'temperature'?");
  CHECK(refusal("Model: x\n") == "c.yaml:1:1: Model: unknown key; did you mean 'model'?");
  CHECK(refusal("sampling: {n_ctx: 256}").find("c.yaml:1:12: sampling.n_ctx: unknown key; the keys here are: seed, temperature,") == 0);
  CHECK(refusal("sampling: {adaptive: 1}").find("unknown key") != std::string::npos);  // a sampler that does not exist yet
  CHECK(refusal("context: {n_ctx: 1}\ncontext: {n_ctx: 2}\n") == "c.yaml:2:1: context: is given twice, first in line 1");
  CHECK(refusal("prompt: {sytem: x}") == "c.yaml:1:10: prompt.sytem: unknown key; did you mean 'system'?");
  CHECK(refusal("plugins: {dir: []}") == "c.yaml:1:11: plugins.dir: unknown key; did you mean 'dirs'?");
  CHECK(refusal("generation: {n: 1}").find("the keys here are: n_predict, stop") != std::string::npos);
  CHECK(refusal("- a\n") == "c.yaml:1:1: must be a mapping (key: value), found a list");
  CHECK(refusal("sampling: 5") == "c.yaml:1:11: sampling: must be a mapping (key: value), found '5'");
  CHECK(refusal("model: [a]") == "c.yaml:1:8: model: must be text, found a list");
  CHECK(refusal("model: \"\"") == "c.yaml:1:8: model: is empty; write a path or the name of a model");
  CHECK(refusal("architecture: ../x").find("c.yaml:1:15: architecture: '../x' is not a plugin name") == 0);
}

TEST_CASE("config: says how the list of backends is written", "[config]") {
  CHECK(accepted("backends: auto").backends.empty());
  CHECK(refusal("backends: cpu") == "c.yaml:1:11: backends: must be auto or a list such as [{name: NAME, gpu_layers: 20}, {name: cpu}]");
  CHECK(refusal("backends: []") == "c.yaml:1:11: backends: the list is empty; name at least one backend or write auto");
  CHECK(refusal("backends: [{threads: 8}]") ==
        "c.yaml:1:12: backends[0]: a backend is written {name: NAME, ...}; the key 'name' is missing");
  CHECK(refusal("backends: [[cpu]]").find("c.yaml:1:12: backends[0]: a backend is written") == 0);
  CHECK(refusal("backends: [{name: a/b}]").find("c.yaml:1:19: backends[0].name: 'a/b' is not a plugin name") == 0);
  CHECK(refusal("backends: [{name: cpu}, {name: cpu}]") == "c.yaml:1:25: backends[1]: backend 'cpu' is listed twice, first at c.yaml:1:12");
  CHECK(refusal("backends: [{name: cpu, strict: yes}]") == "c.yaml:1:32: backends[0].strict: must be true or false, found 'yes'");
  for (const char* bad : {"-1", "most", "\"5\"", "1.5", "2147483648"})
    CHECK(refusal(std::string("backends: [{name: cpu, gpu_layers: ") + bad + "}]")
              .find("c.yaml:1:36: backends[0].gpu_layers: must be all, auto or a whole number of layers, found ") == 0);
}

TEST_CASE("config: refuses plugin paths that would mean something else", "[config]") {
  CHECK(refusal("plugins: {dirs: [a, \"\"]}") == "c.yaml:1:21: plugins.dirs[1]: an empty path");
  CHECK(refusal("plugins: {files: [~/x.so]}") == "c.yaml:1:19: plugins.files[0]: '~' is not expanded here; write the full path");
  CHECK(refusal("plugins: {files: [\"a\\0b\"]}") == "c.yaml:1:19: plugins.files[0]: a path holds a zero byte");
}

TEST_CASE("config: the first machine that fits replaces whole keys", "[config]") {
  const std::string text = R"(model: base.gguf
context: {n_ctx: 100, n_batch: 32}
sampling: {seed: 1, top_k: 5}
machines:
  - when: {hostname: "gpu-?", os: linux}
    model: never.gguf
  - when: {hostname: "gpu-*", os: macos}
    model: mac.gguf
  - when: {hostname: "gpu-*"}
    sampling: {top_k: 9}
    backends: [{name: cuda}]
  - when: {hostname: "*"}
    model: last.gguf
    sampling: {top_k: 10}
)";
  const Config gpu = accepted(text, {"gpu-77", "linux"});
  CHECK(gpu.model.text == "base.gguf");
  CHECK(gpu.context == ContextConfig{100, KvFormatChoice::kAuto, 32, ContextShift::kOff});  // not named by the entry: the file's
  CHECK(gpu.sampling.top_k == 9);
  CHECK(gpu.sampling.seed == 42);  // the section is replaced whole: the default, not the file's 1
  REQUIRE(gpu.backends.size() == 1);
  CHECK(gpu.backends[0].where == "c.yaml:11:16");

  CHECK(accepted(text, {"gpu-7", "linux"}).model.text == "never.gguf");
  CHECK(accepted(text, {"gpu-77", "macos"}).model.text == "mac.gguf");
  const Config other = accepted(text, {"laptop", "linux"});
  CHECK(other.model.text == "last.gguf");
  CHECK(other.sampling.top_k == 10);

  const std::string none = "model: base.gguf\nmachines: [{when: {os: macos}, model: mac.gguf}]";
  CHECK(accepted(none).model.text == "base.gguf");
  CHECK(accepted("machines: []").model.text.empty());
}

TEST_CASE("config: checks the entries of machines that do not fit", "[config]") {
  CHECK(refusal("machines: [{when: {hostname: other}, sampling: {top_p: 2}}]") ==
        "c.yaml:1:56: machines[0].sampling.top_p: must be between 0 and 1, found '2'");
  CHECK(refusal("machines: [{when: {hostname: other}, modl: x}]") == "c.yaml:1:38: machines[0].modl: unknown key; did you mean 'model'?");
  CHECK(refusal("machines: [{when: {hostname: \"*\"}, machines: []}]").find("c.yaml:1:36: machines[0].machines: unknown key") == 0);
  CHECK(refusal("machines: [{model: x}]").find("c.yaml:1:12: machines[0]: the key 'when' is missing; write when:") == 0);
  CHECK(refusal("machines: [{when: {}, model: x}]").find("c.yaml:1:19: machines[0].when: names no condition") == 0);
  CHECK(refusal("machines: [{when: {os: linx}}]") == "c.yaml:1:24: machines[0].when.os: must be linux, macos or windows, found 'linx'");
  CHECK(refusal("machines: [{when: {host: x}}]") == "c.yaml:1:20: machines[0].when.host: unknown key; the keys here are: hostname, os");
  CHECK(refusal("machines: {when: {os: linux}}").find("c.yaml:1:11: machines: must be a list of entries") == 0);
  CHECK(refusal("when: {os: linux}").find("c.yaml:1:1: when: unknown key") == 0);
  // A key that is replaced is checked all the same.
  CHECK(refusal("sampling: {top_p: 2}\nmachines: [{when: {os: linux}, sampling: {}}]").find("c.yaml:1:19: sampling.top_p: ") == 0);
}

TEST_CASE("config/machine: matches host names with star and question mark", "[config]") {
  for (const auto& [pattern, text] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                      {"*", ""},
                                                                                      {"*", "x"},
                                                                                      {"gpu-*", "gpu-"},
                                                                                      {"gpu-*", "gpu-1.a.b"},
                                                                                      {"gpu-?", "gpu-1"},
                                                                                      {"*-gpu", "a-gpu-gpu"},
                                                                                      {"a*b*c", "axxbxbxc"},
                                                                                      {"?*", "x"},
                                                                                      {"**", "x"},
                                                                                      {"[a]", "[a]"},
                                                                                      {"*.example.org", "x.example.org"}}) {
    INFO(pattern << " ~ " << text);
    CHECK(glob_match(pattern, text));
  }
  for (const auto& [pattern, text] : std::vector<std::pair<std::string, std::string>>{{"", "x"},
                                                                                      {"?", ""},
                                                                                      {"gpu-?", "gpu-"},
                                                                                      {"gpu-?", "gpu-12"},
                                                                                      {"gpu", "GPU"},
                                                                                      {"gpu-*", "xgpu-1"},
                                                                                      {"*x", "y"},
                                                                                      {"[a]", "a"},
                                                                                      {"a*b", "ab1"}}) {
    INFO(pattern << " !~ " << text);
    CHECK_FALSE(glob_match(pattern, text));
  }
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*b";
  CHECK_FALSE(glob_match(stars, std::string(100000, 'a')));  // no exponential search
}

TEST_CASE("config/machine: knows this machine", "[config]") {
  const MachineFacts here = this_machine();
  CHECK((here.os == "linux" || here.os == "macos" || here.os == "windows"));
  CHECK(glob_match("*", here.hostname));
}

TEST_CASE("config: paths in a file are relative to the file", "[config]") {
  const test::TempDir dir;
  const auto file = dir.path() / "c.yaml";
  test::write_file(file, "model: ./m.gguf\nplugins: {dirs: [plug]}\n");
  const auto config = load_config(file, kMachine);
  REQUIRE(config.ok());
  CHECK(config->model.base_dir == dir.path());
  CHECK(config->model.where == file.string() + ":1:8");
  CHECK(config->plugins.dirs == std::vector<std::filesystem::path>{dir.path() / "plug"});
  CHECK(load_config(dir.path() / "none.yaml", kMachine).error().code == ErrorCode::kNotFound);
  CHECK(load_config(dir.path(), kMachine).error().text == dir.path().string() + ": is a folder, not a YAML file");
}

TEST_CASE("config: an option sets one key over the file with the same checks", "[config]") {
  Config c = accepted("model: a.gguf\nsampling: {seed: 1, top_k: 5}\nbackends: [{name: cuda, x: 1}]");
  CHECK(apply_override(c, "sampling.top_k", "20", "--top-k", "/cwd").ok());
  CHECK(c.sampling.top_k == 20);
  CHECK(c.sampling.seed == 1);                                       // its neighbours stay
  CHECK(apply_override(c, "model", "yes: [no", "-m", "/cwd").ok());  // never read as YAML
  CHECK(c.model.text == "yes: [no");
  CHECK(c.model.base_dir == "/cwd");
  CHECK(c.model.where == "-m");
  CHECK(apply_override(c, "prompt.system", "", "--system", "/cwd").ok());
  CHECK(c.prompt.system == "");
  CHECK(apply_override_list(c, "generation.stop", {"\n", "a, b"}, "--stop", "/cwd").ok());
  CHECK(c.generation.stop == std::vector<std::string>{"\n", "a, b"});
  CHECK(apply_override_list(c, "plugins.dirs", {"p"}, "--plugin-dir", "/cwd").ok());
  CHECK(c.plugins.dirs == std::vector<std::filesystem::path>{"/cwd/p"});
  CHECK(apply_override_list(c, "backends", {"cuda", "cpu"}, "--backend", "/cwd").ok());
  REQUIRE(c.backends.size() == 2);
  CHECK(c.backends[0].options.children.empty());
  CHECK(c.backends[1].where == "--backend");
  CHECK(apply_override(c, "backends", "auto", "--backend", "/cwd").ok());
  CHECK(c.backends.empty());
  CHECK(apply_override(c, "context.n_ctx", "77", "--n-ctx", "/cwd").ok());
  CHECK(c.context.n_ctx == 77u);
}

TEST_CASE("config: an option that is refused changes nothing and names itself", "[config]") {
  Config c;
  const auto message = [&](std::string_view key, std::string_view value, std::string_view origin) {
    const Status status = apply_override(c, key, value, origin, "/cwd");
    REQUIRE_FALSE(status.ok());
    return status.error().text;
  };
  CHECK(message("sampling.top_p", "1.5", "--top-p") == "--top-p: sampling.top_p: must be between 0 and 1, found '1.5'");
  CHECK(message("context.n_ctx", "0", "--n-ctx") == "--n-ctx: context.n_ctx: must be between 1 and 2147483647, found 0");
  CHECK(message("sampling.topk", "1", "--set") == "--set: sampling.topk: unknown key; did you mean 'top_k'?");
  CHECK(message("sampling", "1", "--set") == "--set: sampling: must be a mapping (key: value), found '1'");
  CHECK(message("sampling.top_k.x", "1", "--set") == "--set: sampling.top_k: must be a whole number, found a mapping");
  CHECK(message("machines", "x", "--set").find("--set: machines: unknown key") == 0);
  CHECK(message("", "x", "--set").find("unknown key") != std::string::npos);
  CHECK(message("model", "", "-m") == "-m: model: is empty; write a path or the name of a model");
  CHECK(c.model.where.empty());
  CHECK_FALSE(apply_override_list(c, "backends", {"cpu", "a b"}, "--backend", "/cwd").ok());
  CHECK(c.backends.empty());
  CHECK(c.sampling == SamplingConfig());
  CHECK(c.context == ContextConfig());
}
