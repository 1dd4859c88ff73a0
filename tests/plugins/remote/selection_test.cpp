// One configuration on machines that differ: in what is installed, in their name, in what can be used.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <sstream>

#include "support/support.hpp"

using namespace minfer;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path& path) {
  std::stringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// A folder with a configuration, and a folder of plugins in it that starts empty.
class Machine {
 public:
  explicit Machine(const std::string& yaml) {
    fs::create_directory(plugins());
    test::write_file(dir_.path() / "run.yaml", yaml + "plugins: {dirs: [plugins]}\n");
  }
  fs::path plugins() const { return dir_.path() / "plugins"; }
  fs::path config() const { return dir_.path() / "run.yaml"; }

  // Installs the device backend of the tests; `key: value` replaces that line of its manifest.
  void install(const std::string& key, const std::string& value) const {
    const fs::path from = test::build_dir() / "tests/plugins/remote";
    const fs::path library = plugins() / "minfer-backend-remote.so";
    if (!fs::exists(library)) fs::copy_file(from / library.filename(), library);
    std::string manifest = read_file(from / "minfer-backend-remote.plugin.yaml");
    const size_t begin = manifest.find(key + ": ");
    REQUIRE(begin != std::string::npos);
    manifest.replace(begin, manifest.find('\n', begin) - begin, key + ": " + value);
    test::write_file(plugins() / "minfer-backend-remote.plugin.yaml", manifest);
  }
  void remove() const {
    for (const fs::path& file : {plugins() / "minfer-backend-remote.so", plugins() / "minfer-backend-remote.plugin.yaml"}) fs::remove(file);
  }

  test::ProcessResult choose(std::vector<std::string> more = {}) const { return run("minfer-plugins", std::move(more)); }
  test::ProcessResult run(const std::string& program, std::vector<std::string> more) const {
    more.insert(more.begin(), {(test::build_dir() / "bin" / program).string()});
    more.insert(more.end(), {"--config", config().string()});
    return test::run_process(more, {}, {"MINFER_PLUGIN_PATH="});
  }

 private:
  test::TempDir dir_;
};

std::string host_name() {
  char name[256] = {};
  REQUIRE(gethostname(name, sizeof name - 1) == 0);
  return name;
}

}  // namespace

TEST_CASE("minfer-plugins/config: one configuration picks what is installed as plugins come and go") {
  const Machine machine("backends: auto\n");
  const auto bare = machine.choose();
  CHECK(bare.exit_code == 0);
  CHECK(bare.err.empty());
  CHECK_THAT(bare.out,
             StartsWith("machine: hostname " + host_name() + ", os linux\nmachines: no entry applies\nbackends: auto, by priority\n") &&
                 Contains("\n  cpu: chosen\n     cpu: ") && Contains("\nused, best first: cpu\n") && !Contains("remote"));

  machine.install("priority", "300");
  const auto with_device = machine.choose();
  CHECK(with_device.exit_code == 0);
  CHECK_THAT(with_device.out, Contains("\n  remote: chosen\n     remote:0: ") && Contains("\nused, best first: remote, cpu\n"));

  machine.install("priority", "1");
  const auto behind = machine.choose();
  CHECK_THAT(behind.out,
             Contains("\n  remote: lower priority: a backend before it runs everything\n") && Contains("used, best first: cpu\n"));

  machine.install("priority", "0");
  CHECK_THAT(machine.choose().out, Contains("\n  remote: only when it is named (priority 0)\n") && Contains("used, best first: cpu\n"));

  machine.install("platform", "amiga-m68k");
  const auto unusable = machine.choose();
  CHECK(unusable.exit_code == 0);
  CHECK_THAT(unusable.out, Contains("\n  remote: not usable: platform: plugin was built for amiga-m68k, this is linux-") &&
                               Contains("\n     do: install the plugin for this platform\n") && Contains("used, best first: cpu\n"));

  machine.remove();
  CHECK(machine.choose().out == bare.out);
}

#ifdef MINFER_TEST_QWEN2
TEST_CASE("minfer-eval/config: what one configuration computes on follows what is installed and the logits do not") {
  const Machine machine("model: " + (test::data_dir() / "tiny/qwen2_F32.gguf").string() + "\nbackends: auto\n");
  const std::vector<std::string> logits = {"logits", "--ids", "1,2,3", "--top", "3"};
  const auto on_cpu = machine.run("minfer-eval", logits);
  REQUIRE(on_cpu.exit_code == 0);
  CHECK_THAT(on_cpu.err, Contains("backend: cpu (") && !Contains("remote"));
  machine.install("priority", "300");
  const auto on_device = machine.run("minfer-eval", logits);
  REQUIRE(on_device.exit_code == 0);
  CHECK_THAT(on_device.err, StartsWith("backend: remote:0 (") && Contains("backend: cpu (") &&
                                Contains("offload: 2 of 2 layers on remote:0 (it does not tell its memory)"));
  CHECK(on_device.out == on_cpu.out);

  const auto layers = [&](const std::string& count) {
    std::vector<std::string> arguments = logits;
    arguments.insert(arguments.end(), {"--gpu-layers", count});
    return machine.run("minfer-eval", arguments);
  };
  CHECK_THAT(layers("1").err, Contains("offload: 1 of 2 layers on remote:0 (it does not tell its memory)"));
  CHECK_THAT(layers("0").err, Contains("offload: 0 of 2 layers on remote:0 (it does not tell its memory)"));
  CHECK_THAT(layers("99").err, Contains("gpu_layers 99: the model has 2 layers, remote:0 takes all of them"));
  CHECK_THAT(layers("all").err, Contains("offload: 2 of 2 layers on remote:0 (it does not tell its memory)"));
  for (const std::string count : {"0", "1", "99", "auto"}) CHECK(layers(count).out == on_cpu.out);
  for (const std::string count : {"-1", "1.5", "many", ""}) {
    const auto refused = layers(count);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, StartsWith("error: --gpu-layers: must be all, auto or a whole number of layers, found '" + count + "'"));
  }
}
#endif

TEST_CASE("minfer-plugins/config: the first machines entry that fits this machine decides and is named") {
  const Machine machine(
      "backends: [cpu]\n"
      "machines:\n"
      "  - when: {hostname: \"no-such-*\"}\n"
      "    backends: [cpu]\n"
      "  - when: {hostname: \"" +
      host_name().substr(0, 1) +
      "*\", os: linux}\n"
      "    backends: [{name: remote, devices: 2}, cpu]\n"
      "  - when: {os: linux}\n"
      "    backends: [cpu]\n");
  machine.install("priority", "0");
  const auto chosen = machine.choose();
  CHECK(chosen.exit_code == 0);
  CHECK_THAT(chosen.out,
             Contains("\nmachines: the entry at " + machine.config().string() + ":5:5 applies\nbackends: as listed\n  remote: chosen\n") &&
                 Contains("     remote:1: ") && Contains("\nused, best first: remote, cpu\n"));
}

TEST_CASE("minfer-plugins/config: a listed backend that cannot be used is an error of its own class and nothing replaces it") {
  const auto refused = [](
                           const std::string& name, const std::function<void(const Machine&)>& prepare = [](const Machine&) {}) {
    const Machine machine("backends: [" + name + ", cpu]\n");
    prepare(machine);
    const auto result = machine.choose();
    CHECK(result.exit_code == 1);
    CHECK(result.err == "error: a listed backend cannot be used\n");
    CHECK_THAT(result.out, !Contains("used, best first"));
    return result.out;
  };
  CHECK_THAT(refused("cpuu"), Contains("backend 'cpuu' (") && Contains("run.yaml:1:12) is not known") && Contains("did you mean 'cpu'?"));
  CHECK_THAT(refused("vulkan"),
             Contains("is not installed") && Contains("looked ") && Contains("/plugins") && Contains("minfer-backend-vulkan"));
  CHECK_THAT(refused("remote", [](const Machine& m) { m.install("platform", "amiga-m68k"); }),
             Contains("backend 'remote' (") && Contains("is not usable") && Contains("stage  platform: plugin was built for amiga-m68k"));
  CHECK_THAT(refused("{name: remote, fail_alloc: x}", [](const Machine& m) { m.install("priority", "0"); }),
             Contains("is not usable") && Contains("stage  open: ") && Contains("fail_alloc"));
}

TEST_CASE("minfer-plugins/config: a plugin with a broken manifest is there and not usable") {
  const Machine machine("backends: [remote]\n");
  machine.install("priority", "high");
  const auto result = machine.choose();
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Contains("backend 'remote' (") && Contains("is not usable") && Contains("stage  manifest: ") &&
                             Contains("priority") && !Contains("not installed"));
}

TEST_CASE("minfer-plugins/config: a plugin file or folder that is named and cannot be used is an error whatever is chosen") {
  const Machine machine("backends: [cpu]\n");
  machine.install("priority", "0");
  const std::string good = (machine.plugins() / "minfer-backend-remote.so").string();
  CHECK(machine.choose({"--plugin", good}).exit_code == 0);
  const auto missing = machine.choose({"--plugin", "/nonexistent/x.so"});
  CHECK(missing.exit_code == 1);
  CHECK(missing.err ==
        "error: /nonexistent/x.so, named with --plugin, --plugin-dir or under plugins, cannot be used\n  stage  found: the file does not "
        "exist\n  do     check the path\n");
  CHECK_THAT(machine.choose({"--plugin-dir", "/nonexistent"}).err, Contains("/nonexistent") && Contains("the folder cannot be read"));
  test::write_file(good, "text");
  const auto broken = machine.choose({"--plugin", good});
  CHECK(broken.exit_code == 1);
  CHECK_THAT(broken.err, Contains("stage  found: ") && Contains("is not a shared library"));
  CHECK(machine.choose().exit_code == 0);  // merely lying in a folder it troubles nobody
  CHECK(machine.run("minfer-eval", {"logits", "--ids", "1", "-m", "none", "--plugin", good}).exit_code == 1);
}
