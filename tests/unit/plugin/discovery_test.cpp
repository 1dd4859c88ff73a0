#include "plugin/discovery.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "support/plugin_folder.hpp"

using namespace minfer;
using namespace minfer::plugin;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names(const Discovery& found) {
  std::vector<std::string> out;
  for (const Candidate& c : found.candidates) out.push_back(c.manifest.name + "@" + c.origin + (c.shadowed_by.empty() ? "" : " shadowed"));
  return out;
}

}  // namespace

TEST_CASE("plugin/discovery: searches the places in their order and shadows later finds") {
  test::PluginFolder file, dir, env, prefix;
  test::TempDir exe;
  file.add("a");
  dir.add("a");
  dir.add("c");
  dir.add("b");
  env.add("c");
  env.add("d");
  prefix.add("d");
  prefix.add("e");
  fs::create_directories(exe.path() / "plugins");
  fs::copy(env.path(), exe.path() / "plugins");

  SearchPaths search;
  search.files = {file.path() / "minfer-backend-a.so"};
  search.dirs = {dir.path()};
  search.env_dirs = "relative:" + env.path().string();
  search.exe_dir = exe.path();
  search.prefix_dir = prefix.path();
  const Discovery found = discover(search);
  CHECK(names(found) == std::vector<std::string>{"a@--plugin", "a@--plugin-dir shadowed", "b@--plugin-dir", "c@--plugin-dir",
                                                 "c@MINFER_PLUGIN_PATH shadowed", "d@MINFER_PLUGIN_PATH", "c@program folder shadowed",
                                                 "d@program folder shadowed", "d@installed shadowed", "e@installed"});
  for (const Candidate& c : found.candidates) CHECK(c.record.ok());
  CHECK(found.candidates[1].shadowed_by == found.candidates[0].path);
  REQUIRE(found.notices.size() == 1);
  CHECK_THAT(found.notices[0], Contains("relative") && Contains("absolute"));
}

TEST_CASE("plugin/discovery: never looks into the current directory unasked") {
  test::PluginFolder here;
  here.add("a");
  const fs::path before = fs::current_path();
  fs::current_path(here.path());
  SearchPaths search;
  search.env_dirs = ":.::";
  const Discovery found = discover(search);
  fs::current_path(before);
  CHECK(found.candidates.empty());
  CHECK(found.searched.empty());
}

TEST_CASE("plugin/discovery: a named folder or file that is missing is reported") {
  SearchPaths search;
  search.dirs = {"/nonexistent/plugins"};
  search.files = {"/nonexistent/minfer-backend-x.so"};
  const Discovery found = discover(search);
  REQUIRE(found.candidates.size() == 2);
  for (const Candidate& c : found.candidates) {
    CHECK(c.record.stage == Stage::kFound);
    CHECK_THAT(c.record.path.string(), Contains("/nonexistent/"));
    CHECK_FALSE(c.record.ok());
  }
}

TEST_CASE("plugin/discovery: each defect that needs no loading is judged at its stage") {
  struct Case {
    const char *key, *value;
    Stage stage;
    const char* words;
  };
  const Case cases[] = {
      {"priority", "high", Stage::kManifest, "priority"},
      {"platform", "amiga-m68k", Stage::kPlatform, "built for amiga-m68k"},
      {"abi", "\"2.0\"", Stage::kAbi, "built for ABI 2.0, this core provides 1.0"},
      {"abi_hash", "\"00000000000000000000000000000000000000000000000000000000000000ff\"", Stage::kAbi, "headers 000000000000"},
      {"library", "minfer-backend-gone.so", Stage::kFound, "minfer-backend-gone.so does not exist"},
  };
  for (const Case& c : cases) {
    test::PluginFolder folder;
    folder.add("a", "", c.key, c.value);
    const Discovery found = folder.discover();
    INFO(c.key);
    REQUIRE(!found.candidates.empty());
    CHECK(found.candidates[0].record.stage == c.stage);
    CHECK_THAT(found.candidates[0].record.text, Contains(c.words));
    CHECK_FALSE(found.candidates[0].record.hint.empty());
  }
}

TEST_CASE("plugin/discovery: a library that is a folder or a pipe is refused before it is opened") {
  test::PluginFolder folder;
  folder.add("a");
  const fs::path library = folder.discover().candidates.at(0).library;
  const auto record = [&] { return folder.discover().candidates.at(0).record; };
  REQUIRE(record().ok());
  fs::remove(library);
  fs::create_directory(library);
  CHECK_THAT(record().text, Contains(library.string() + " is not a regular file"));
  fs::remove(library);
  REQUIRE(::mkfifo(library.c_str(), 0600) == 0);
  CHECK(record().stage == Stage::kFound);
  CHECK_THAT(record().text, Contains(library.string() + " is not a regular file"));
}

TEST_CASE("plugin/discovery: a library without a manifest is listed as such") {
  test::PluginFolder folder;
  folder.add("a");
  test::write_file(folder.path() / "stray.so", "text");
  fs::create_directory(folder.path() / "x.so");
  const Discovery found = folder.discover();
  REQUIRE(found.candidates.size() == 3);
  CHECK(found.candidates[0].record.ok());
  for (size_t i : {1u, 2u}) {
    CHECK(found.candidates[i].record.stage == Stage::kManifest);
    CHECK_THAT(found.candidates[i].record.text, Contains("no manifest"));
  }
}

TEST_CASE("plugin/safety: refuses what everyone may write unless it is allowed and then says so") {
  for (const char* what : {"manifest", "library", "folder"}) {
    test::PluginFolder folder;
    const fs::path manifest = folder.add("a");
    const std::string which = what;
    const fs::path target = which == "manifest" ? manifest : which == "library" ? folder.path() / "minfer-backend-a.so" : folder.path();
    fs::permissions(target, fs::perms::others_write, fs::perm_options::add);
    INFO(what);

    const Discovery refused = folder.discover();
    REQUIRE(refused.candidates.size() == 1);
    CHECK(refused.candidates[0].record.stage == Stage::kSafety);
    CHECK_THAT(refused.candidates[0].record.text, Contains(fs::canonical(target).string()) && Contains("writable by everyone"));

    SearchPaths search;
    search.dirs = {folder.path()};
    search.allow_unsafe_paths = true;
    const Discovery allowed = discover(search);
    CHECK(allowed.candidates[0].record.ok());
    REQUIRE(!allowed.notices.empty());
    CHECK_THAT(allowed.notices[0], Contains("allow_unsafe_paths"));

    if (target == folder.path()) {
      fs::permissions(target, fs::perms::sticky_bit, fs::perm_options::add);
      CHECK(folder.discover().candidates[0].record.ok());
    }
  }
}

TEST_CASE("plugin/safety: judges the file behind a symbolic link") {
  test::PluginFolder real, links;
  const fs::path manifest = real.add("a");
  fs::permissions(real.path(), fs::perms::others_write, fs::perm_options::add);
  fs::create_symlink(manifest, links.path() / "minfer-backend-a.plugin.yaml");
  const Discovery found = links.discover();
  REQUIRE(found.candidates.size() == 1);
  CHECK(found.candidates[0].path == fs::canonical(manifest));
  CHECK(found.candidates[0].record.stage == Stage::kSafety);
}
