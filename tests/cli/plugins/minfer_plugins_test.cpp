// minfer-plugins as a user runs it.
#include <catch2/catch.hpp>

#include "support/support.hpp"

using namespace minfer;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

test::ProcessResult run_plugins(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), (test::build_dir() / "bin" / "minfer-plugins").string());
  return test::run_process(arguments, {}, {"MINFER_PLUGIN_PATH="});
}

}  // namespace

TEST_CASE("minfer-plugins: lists the plugins beside the program with kind and name and version and path") {
  const auto result = run_plugins({});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("backend  null  0.1.0  found") && Contains("minfer-backend-null.plugin.yaml  (program folder)"));
  CHECK(result.err.empty());
}

TEST_CASE("minfer-plugins: --why loads a plugin and shows shadowed and broken ones of that name") {
  const test::TempDir dir;
  test::write_file(dir.path() / "minfer-backend-null.so", "this is text");
  fs::copy_file(test::build_dir() / "bin" / "plugins" / "minfer-backend-null.plugin.yaml", dir.path() / "minfer-backend-null.plugin.yaml");

  const auto good = run_plugins({"--why", "null"});
  CHECK(good.exit_code == 0);
  CHECK_THAT(good.out, Contains("null  0.1.0  ready"));

  const auto broken = run_plugins({"--plugin-dir", dir.path().string(), "--why", "null"});
  CHECK(broken.exit_code == 1);
  CHECK_THAT(broken.out, Contains("skipped, found: ") && Contains(dir.path().string()) && Contains("shadowed by") && Contains("do: "));

  const auto named = run_plugins({"--plugin", (test::build_dir() / "bin/plugins/minfer-backend-null.so").string(), "--plugin-dir",
                                  dir.path().string(), "--why", "null"});
  CHECK(named.exit_code == 0);
  CHECK_THAT(named.out, Contains("null  0.1.0  ready") && Contains("(--plugin)"));
}

TEST_CASE("minfer-plugins: a name nobody has is an error with the nearest one") {
  const auto result = run_plugins({"--why", "nul"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains("error: ") && Contains("did you mean 'null'?"));
}

TEST_CASE("minfer-plugins: a bad command line is exit 2 and help is exit 0") {
  CHECK(run_plugins({"--no-such-option"}).exit_code == 2);
  CHECK(run_plugins({"word"}).exit_code == 2);
  CHECK(run_plugins({"--why"}).exit_code == 2);
  const auto help = run_plugins({"--help"});
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.out, Contains("--plugin-dir") && Contains("--why") && Contains("--check"));
}

TEST_CASE("minfer-plugins: a full disk is an error") {
  const std::string program = (test::build_dir() / "bin" / "minfer-plugins").string();
  for (const char* option : {"", " --check", " --why null", " --help"}) {
    INFO(option);
    const auto full = test::run_process({"/bin/sh", "-c", program + option + " > /dev/full"});
    CHECK(full.exit_code == 1);
    CHECK_THAT(full.err, Contains("error: standard output cannot be written"));
  }
}
