// Plugins with one defect each: where they stop and what the user reads.
#include "plugin/loader.hpp"

#include <cstdlib>

#include "plugin/registry.hpp"
#include "plugin_folder.hpp"

using namespace minfer;
using namespace minfer::plugin;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

// The probe of that name, installed under the name its descriptor has.
Record record_of(std::string_view probe) {
  test::PluginFolder folder;
  folder.add("probe", probe);
  const Registry registry(folder.discover(), {});
  REQUIRE(registry.found().candidates.size() == 1);
  return registry.probe(registry.found().candidates[0]);
}

}  // namespace

TEST_CASE("plugin/loader: a good plugin becomes ready") {
  const Record record = record_of("good");
  INFO(record.text);
  CHECK(record.ok());
  CHECK(record.stage == Stage::kReady);
}

TEST_CASE("plugin/loader: each defect is refused at its stage with the words that help") {
  struct Case {
    const char* probe;
    Stage stage;
    const char* words;
  };
  const Case cases[] = {
      {"missing_library", Stage::kDlopen, "libdoesnotexist-77.so.1"},
      {"no_symbol", Stage::kEntry, "no symbol minfer_plugin_query_v1"},
      {"null_descriptor", Stage::kEntry, "returned nothing"},
      {"newer_major", Stage::kAbi, "built for ABI 2.0, this core provides 1.0"},
      {"needs_minor", Stage::kAbi, "needs core ABI >= 1.4, this core provides 1.0"},
      {"other_hash", Stage::kAbi, "built from ABI headers 00"},
      {"wrong_kind", Stage::kDescriptor, "the manifest says backend"},
      {"throws_in_open", Stage::kOpen, "threw an exception"},
      {"fails_in_open", Stage::kOpen, "driver 12.4 or newer is needed, found 11.8"},
      {"lacks_function", Stage::kOpen, "lacks the function plan_run"},
      {"short_table", Stage::kOpen, "ends before plan_run"},
      {"no_device", Stage::kDevices, "no device"},
  };
  for (const Case& c : cases) {
    const Record record = record_of(c.probe);
    INFO(c.probe << ": " << record.text);
    CHECK(record.stage == c.stage);
    CHECK_THAT(record.text, Contains(c.words));
    CHECK_FALSE(record.hint.empty());
    CHECK_THAT(record.path.string(), Contains("minfer-backend-probe.plugin.yaml"));
  }
}

TEST_CASE("plugin/loader: a directory named like a library is refused") {
  test::PluginFolder folder;
  folder.add("probe");
  fs::remove(folder.path() / "minfer-backend-probe.so");
  fs::create_directory(folder.path() / "minfer-backend-probe.so");
  const Registry registry(folder.discover(), {});
  const Record record = registry.probe(registry.found().candidates[0]);
  CHECK(record.stage == Stage::kFound);
}

TEST_CASE("plugin/loader: a manifest that disagrees with its library is refused") {
  for (const auto& [key, value] : {std::pair{"version", "\"1.3.0\""}, {"name", "other"}}) {
    test::PluginFolder folder;
    folder.add("probe", "good", key, value);
    const Registry registry(folder.discover(), {});
    const Record record = registry.probe(registry.found().candidates[0]);
    INFO(key << ": " << record.text);
    CHECK(record.stage == Stage::kDescriptor);
    CHECK_THAT(record.text, Contains(key) && Contains("the library"));
  }
}

TEST_CASE("plugin/loader: listing runs no code of a plugin") {
  test::PluginFolder folder;
  folder.add("probe", "good");
  const fs::path touched = folder.path() / "touched";
  setenv("MINFER_PROBE_TOUCH", touched.c_str(), 1);
  Registry registry(folder.discover(), {});
  CHECK(registry.automatic(Kind::kBackend) == std::vector<std::string>{"probe"});
  CHECK_FALSE(fs::exists(touched));
  CHECK(registry.open_backend({"probe", {}, ""}).ok());
  unsetenv("MINFER_PROBE_TOUCH");
  CHECK(fs::exists(touched));  // the trace works
}

TEST_CASE("plugin/loader: two plugins keep their own symbols of one name") {
  test::PluginFolder one, two;
  one.add("probe", "good");
  two.add("probe", "twin");
  Registry first(one.discover(), {}), second(two.discover(), {});
  const auto a = first.open_backend({"probe", {}, ""});
  const auto b = second.open_backend({"probe", {}, ""});
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK((*a)->devices()[0]->info().name == "probe1");
  CHECK((*b)->devices()[0]->info().name == "probe2");
}

TEST_CASE("plugin/registry: an option that the plugin never asks for is refused with the nearest one") {
  test::PluginFolder folder;
  folder.add("probe", "good");
  Registry registry(folder.discover(), {});
  CHECK(registry.open_backend({"probe", {{"threads", "8"}}, ""}).ok());
  const auto refused = registry.open_backend({"probe", {{"threads", "8"}, {"thraeds", "8"}}, "c.yaml:3"});
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().text, Contains("c.yaml:3") && Contains("option 'thraeds' is not known, did you mean 'threads'?"));
}

TEST_CASE("plugin/registry: a named backend that cannot be used is an error and nothing replaces it") {
  test::PluginFolder folder;
  folder.add("cpu", "good", "abi", "\"2.0\"");
  folder.add("gpu", "good", "platform", "amiga-m68k");
  folder.add("probe", "good");
  Registry registry(folder.discover(), {});
  const auto unusable = registry.open_backend({"gpu", {}, "c.yaml:7"});
  REQUIRE_FALSE(unusable.ok());
  CHECK_THAT(unusable.error().text,
             Contains("backend 'gpu' (c.yaml:7) is not usable") && Contains("stage  platform") && Contains("available here: probe;"));
  const auto misspelt = registry.open_backend({"prboe", {}, ""});
  REQUIRE_FALSE(misspelt.ok());
  CHECK_THAT(misspelt.error().text, Contains("did you mean 'probe'?"));
  const auto absent = registry.open_backend({"vulkan", {}, ""});
  REQUIRE_FALSE(absent.ok());
  CHECK_THAT(absent.error().text, Contains("is not installed") && Contains(folder.path().string()));
}

TEST_CASE("plugin/registry: automatic choice goes by priority and then by name and leaves out priority 0") {
  test::PluginFolder folder;
  folder.add("b", "", "priority", "100");
  folder.add("a", "", "priority", "100");
  folder.add("z", "", "priority", "200");
  folder.add("never", "", "priority", "0");
  folder.add("broken", "", "platform", "amiga-m68k");
  const Registry registry(folder.discover(), {});
  CHECK(registry.automatic(Kind::kBackend) == std::vector<std::string>{"z", "a", "b"});
  CHECK(registry.automatic(Kind::kArchitecture).empty());
}
