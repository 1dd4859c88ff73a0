// Plugins with one defect each: where they stop and what the user reads.
#include "plugin/loader.hpp"

#include <cstdlib>

#include "plugin/registry.hpp"
#include "support/plugin_folder.hpp"

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

TEST_CASE("plugin/loader: a plugin whose structs are longer than this core knows becomes ready") {
  const Record record = record_of("longer");
  INFO(record.text);
  CHECK(record.stage == Stage::kReady);
}

TEST_CASE("plugin/loader: each defect is refused at its stage with its reason and what to do") {
  const std::string versions = "install a plugin built for this version of minfer, or build both from the same sources";
  const std::string author = "report it to the plugin's author";
  const std::string together = "manifest and library do not belong together: install the plugin again";
  const std::string no_plugin = "this is no plugin for ABI 1 of minfer: install one that is, or remove the file";
  const std::string needs = "install what the library needs, or install the plugin again";
  const std::string device = "check the device, its driver and the backend's options";
  struct Case {
    std::string probe;
    Stage stage;
    std::string text, hint;
    std::string key = {}, value = {};  // a line of the manifest
  };
  const std::string here = std::string(MI_ABI_HASH).substr(0, 12);
  const Case cases[] = {
      {"missing_library", Stage::kDlopen, "libdoesnotexist-77.so.1: cannot open shared object file: No such file or directory", needs},
      {"undefined_symbol", Stage::kDlopen, "LIBRARY: undefined symbol: _Z13probe_nowherev", needs},
      {"no_symbol", Stage::kEntry, "the library has no symbol minfer_plugin_query_v1", no_plugin},
      {"null_descriptor", Stage::kEntry, "minfer_plugin_query_v1 returned nothing", author},
      {"throws_in_query", Stage::kEntry, "minfer_plugin_query_v1 threw an exception", author},
      {"short_descriptor", Stage::kAbi, "the plugin's descriptor has 56 bytes, this core needs 72", versions},
      {"newer_major", Stage::kAbi, "plugin was built for ABI 2.0, this core provides 1.0", versions},
      {"needs_minor", Stage::kAbi, "plugin needs core ABI >= 1.4, this core provides 1.0",
       "upgrade minfer, or install an older version of the plugin"},
      {"other_hash", Stage::kAbi, "plugin was built from ABI headers 0123456789ab, this core from " + here, versions},
      {"wrong_kind", Stage::kDescriptor, "the manifest says backend, the library is a plugin of kind 2", together},
      {"good", Stage::kDescriptor, "the manifest says name 'other', the library 'probe'", together, "name", "other"},
      {"good", Stage::kDescriptor, "the manifest says version '1.3.0', the library '1.2.0'", together, "version", "\"1.3.0\""},
      {"no_close", Stage::kDescriptor, "the descriptor lacks the function close", author},
      {"throws_in_open", Stage::kOpen, "open threw an exception across the plugin boundary", author},
      {"fails_in_open", Stage::kOpen, "open: driver 12.4 or newer is needed, found 11.8",
       "check the plugin's options and what it needs on this machine"},
      {"no_table", Stage::kOpen, "open gave no backend table", versions},
      {"short_table", Stage::kOpen, "the backend table ends before plan_run", versions},
      {"lacks_function", Stage::kOpen, "the backend table lacks the function plan_run", author},
      {"no_device", Stage::kDevices, "it found no device on this machine", device},
      {"device_fails", Stage::kDevices, "device 0: another process holds it", device},
  };
  for (const Case& c : cases) {
    test::PluginFolder folder;
    const fs::path manifest = folder.add("probe", c.probe, c.key, c.value);
    const Registry registry(folder.discover(), {});
    REQUIRE(registry.found().candidates.size() == 1);
    CHECK(registry.found().candidates[0].record.ok());  // nothing of this shows before it is loaded
    const Record record = registry.probe(registry.found().candidates[0]);
    INFO(c.probe);
    std::string text = c.text;
    const std::string library = registry.found().candidates[0].library.string();
    if (const size_t at = text.find("LIBRARY"); at != std::string::npos) text.replace(at, 7, library);
    CHECK(stage_name(record.stage) == stage_name(c.stage));
    CHECK(record.text == text);
    CHECK(record.hint == c.hint);
    CHECK(record.path == fs::canonical(manifest));
  }
}

TEST_CASE("plugin/loader: a library file that cannot be one is refused before it is loaded") {
  const std::string again = "install the plugin again";
  test::PluginFolder folder;
  folder.add("probe", "good");
  const fs::path library = fs::canonical(folder.path() / "minfer-backend-probe.so");
  const std::string good = test::read_file(library);
  const auto check = [&](Stage stage, const std::string& text, const std::string& hint) {
    const Record record = folder.discover().candidates.at(0).record;
    CHECK(stage_name(record.stage) == stage_name(stage));
    CHECK(record.text == text);
    CHECK(record.hint == hint);
  };
  check(Stage::kFound, "", "");
  const auto with_byte = [&](size_t offset, char byte) {
    std::string bytes = good;
    bytes[offset] = byte;
    return bytes;
  };
  test::write_file(library, "this is text");
  check(Stage::kFound, library.string() + " is not a shared library", again);
  test::write_file(library, good.substr(0, 40));
  check(Stage::kFound, library.string() + " is cut off: it ends in its header", again);
  test::write_file(library, good.substr(0, good.size() / 4));
  check(Stage::kFound, library.string() + " is cut off: it has " + std::to_string(good.size() / 4) + " bytes, its headers speak of more",
        again);
  test::write_file(library, with_byte(16, 1));  // e_type: an object file
  check(Stage::kFound, library.string() + " is not a shared library", again);
  const std::string platform = "install the plugin for this platform";
  test::write_file(library, with_byte(4, good[4] == 2 ? 1 : 2));  // EI_CLASS
  const std::string machine = std::string(MINFER_PLATFORM).substr(std::string(MINFER_PLATFORM).find('-') + 1);
  check(Stage::kPlatform, "the library was built for a machine of another word size or byte order, this is " + machine, platform);
  test::write_file(library, with_byte(18, static_cast<char>(machine == "aarch64" ? 62 : 183)));  // e_machine
  check(Stage::kPlatform,
        std::string("the library was built for ") + (machine == "aarch64" ? "x86_64" : "aarch64") + ", this is " + machine, platform);
  test::write_file(library, good);
  fs::permissions(library, fs::perms::others_write, fs::perm_options::add);
  check(Stage::kSafety, "the file " + library.string() + " is writable by everyone",
        "chmod o-w it, or set plugins.allow_unsafe_paths: true");
}

TEST_CASE("plugin/registry: the three refusals of a name are kept apart") {
  test::PluginFolder folder;
  folder.add("gpu", "good", "platform", "amiga-m68k");
  folder.add("probe", "good");
  folder.add("broken", "good", "priority", "high");
  Registry registry(folder.discover(), {});
  const auto refusal = [&](const std::string& name, const std::string& where = {}) {
    const auto opened = registry.open_backend({name, {}, where});
    REQUIRE_FALSE(opened.ok());
    return opened.error().text;
  };
  const std::string dir = fs::canonical(folder.path()).string();
  CHECK(refusal("prboe", "c.yaml:3") ==
        "backend 'prboe' (c.yaml:3) is not known\n  do     did you mean 'probe'?   (available here: probe)");
  CHECK(refusal("gpuu") == "backend 'gpuu' is not known\n  do     did you mean 'gpu'?   (available here: probe)");  // though it is unusable
  CHECK(refusal("vulkan") == "backend 'vulkan' is not installed\n  looked " + folder.path().string() +
                                 "\n  do     install the plugin minfer-backend-vulkan, or name its folder with --plugin-dir   (available "
                                 "here: probe)");
  CHECK(refusal("gpu", "c.yaml:7") == "backend 'gpu' (c.yaml:7) is not usable\n  tried  " + dir +
                                          "/minfer-backend-gpu.plugin.yaml\n  stage  platform: plugin was built for amiga-m68k, this is " +
                                          MINFER_PLATFORM +
                                          "\n  do     install the plugin for this platform   (available here: probe; `minfer-plugins --why "
                                          "gpu` for all candidates)");
  // There, but with a manifest that cannot be read: not "not installed".
  CHECK_THAT(refusal("broken"), Contains("backend 'broken' is not usable\n  tried  " + dir + "/minfer-backend-broken.plugin.yaml\n") &&
                                    Contains("stage  manifest: ") && Contains("priority"));
}

TEST_CASE("plugin/registry: a file that the user named is judged as far as its descriptor and none is opened") {
  test::PluginFolder folder;
  const auto status = [&](const fs::path& file) {
    SearchPaths search;
    search.files = {file};
    return Registry(discover(search), {}).check_named();
  };
  CHECK(status(folder.add("probe", "fails_in_open")).ok());  // what only opening shows is told when it is used
  test::PluginFolder other;                                  // a library of the same path would be the one that is loaded already
  CHECK_THAT(status(other.add("probe", "undefined_symbol")).error().text,
             Contains("stage  dlopen: ") && Contains("undefined symbol: _Z13probe_nowherev"));
  CHECK_THAT(status(other.path() / "gone.so").error().text, Contains("stage  found: the file does not exist"));
  SearchPaths search;
  search.dirs = {other.path()};
  CHECK(Registry(discover(search), {}).check_named().ok());  // in a folder it troubles nobody until it is wanted
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
