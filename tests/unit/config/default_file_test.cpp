// The files of configs/: default.yaml says the built-in defaults, and names every key that the reader knows.
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>
#include <string>

#include "config/config.hpp"
#include "support/support.hpp"

using namespace minfer;

namespace {

const std::filesystem::path kConfigs = MINFER_CONFIGS_DIR;
const MachineFacts kMachine = {"laptop", "linux"};

// The keys of a section, as the reader lists them when it meets one that is like none of them.
std::vector<std::string> known_keys(const std::string& section) {
  const std::string bad_key = "zzzzzzzzzzzzzzzzzzzzzzzz: 1";
  const auto document = yaml::parse_yaml(section.empty() ? bad_key : section + ": {" + bad_key + "}", "f");
  REQUIRE(document.ok());
  const auto config = read_config(*document, "/", kMachine);
  REQUIRE_FALSE(config.ok());
  const std::string marker = "the keys here are: ";
  const size_t at = config.error().text.find(marker);
  REQUIRE(at != std::string::npos);
  std::istringstream list(config.error().text.substr(at + marker.size()));
  std::vector<std::string> keys;
  for (std::string key; list >> key;) keys.push_back(key.substr(0, key.find(',')));
  return keys;
}

// The line that gives the key, at that indentation; "# key:" counts: those have no default that could be written.
bool has_key_line(const std::string& text, const std::string& indent, const std::string& key) {
  return text.find("\n" + indent + key + ":") != std::string::npos || text.find("\n" + indent + "# " + key + ":") != std::string::npos;
}

}  // namespace

TEST_CASE("configs/default.yaml: equals the built-in defaults", "[config]") {
  const auto c = load_config(kConfigs / "default.yaml", kMachine);
  if (!c.ok()) FAIL(c.error().text);
  const Config built_in;
  CHECK(c->model.text == built_in.model.text);
  CHECK(c->architecture == built_in.architecture);
  CHECK(c->backends.empty());
  CHECK(c->context == built_in.context);
  CHECK(c->generation == built_in.generation);
  CHECK(c->sampling == built_in.sampling);
  CHECK(c->prompt == built_in.prompt);
  CHECK(c->output == built_in.output);
  CHECK(c->plugins == built_in.plugins);
}

TEST_CASE("configs/default.yaml: names every key of every section", "[config]") {
  const std::string text = test::read_file(kConfigs / "default.yaml");
  const std::vector<std::string> top = known_keys("");
  CHECK(top.size() == 10);
  for (const std::string& key : top) {
    INFO(key);
    CHECK(has_key_line(text, "", key));
    const bool is_section = key != "model" && key != "architecture" && key != "backends" && key != "machines";
    if (!is_section) continue;
    const size_t begin = text.find("\n" + key + ":");
    const std::string section = text.substr(begin, text.find("\n\n", begin) - begin);
    for (const std::string& inner : known_keys(key)) {
      INFO(key << "." << inner);
      CHECK(has_key_line(section, "  ", inner));
    }
  }
  for (const char* key : {"name", "gpu_layers", "strict"}) CHECK(text.find("\n#   " + std::string(key) + " ") != std::string::npos);
}

TEST_CASE("configs/default.yaml: its commented examples are legal", "[config]") {
  const auto document = yaml::parse_yaml(
      "model: qwen2.5-coder-0.5b-instruct-q4_k_m.gguf\n"
      "backends:\n  - {name: cuda, gpu_layers: 20}\n  - {name: cpu, threads: 8, isa: auto, strict: false}\n"
      "machines:\n  - when: {hostname: \"gpu-*\", os: linux}\n    backends: [{name: cuda}, {name: cpu}]\n",
      "f");
  REQUIRE(document.ok());
  const auto config = read_config(*document, "/", {"gpu-1", "linux"});
  REQUIRE(config.ok());
  CHECK(config->backends.size() == 2);
}

TEST_CASE("configs: the shipped files load and say what they promise", "[config]") {
  const auto qwen2 = load_config(kConfigs / "qwen2.yaml", kMachine);
  if (!qwen2.ok()) FAIL(qwen2.error().text);
  CHECK(qwen2->model.text == test::kQwen2Model);
  CHECK(qwen2->backends.empty());
  CHECK(qwen2->context.n_ctx == 4096u);
  CHECK(qwen2->sampling == SamplingConfig());
  const auto on_gpu = load_config(kConfigs / "qwen2.yaml", {"gpu-3", "linux"});
  REQUIRE(on_gpu.ok());
  REQUIRE(on_gpu->backends.size() == 1);
  CHECK(on_gpu->backends[0].name == "cuda");

  const auto cpu = load_config(kConfigs / "cpu-only.yaml", kMachine);
  if (!cpu.ok()) FAIL(cpu.error().text);
  REQUIRE(cpu->backends.size() == 1);
  CHECK(cpu->backends[0].name == "cpu");
  CHECK(cpu->backends[0].strict);
}
