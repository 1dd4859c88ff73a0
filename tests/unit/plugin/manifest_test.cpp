#include "plugin/manifest.hpp"

#include "support/plugin_folder.hpp"

using namespace minfer;
using namespace minfer::plugin;
using Catch::Matchers::Contains;

TEST_CASE("plugin/manifest: reads every field") {
  const auto m = parse_manifest(test::manifest_text("probe", "priority", "7"), "probe.plugin.yaml");
  REQUIRE(m.ok());
  CHECK(m->kind == Kind::kBackend);
  CHECK(m->name == "probe");
  CHECK(m->version == "1.2.0");
  CHECK(m->library == "minfer-backend-probe.so");
  CHECK(m->abi_major == 1);
  CHECK(m->abi_minor == 0);
  CHECK(m->abi_hash == MI_ABI_HASH);
  CHECK(m->platform == MINFER_PLATFORM);
  CHECK(m->priority == 7);
}

TEST_CASE("plugin/manifest: refuses a bad value and names its key") {
  struct Case {
    const char *key, *value;
  };
  for (const Case& c : {Case{"kind", "driver"},
                        {"name", "Probe"},
                        {"name", "../x"},
                        {"name", "\"\""},
                        {"version", "\"1 2\""},
                        {"library", "../evil.so"},
                        {"library", "/tmp/evil.so"},
                        {"library", "minfer.txt"},
                        {"library", "..so"},
                        {"abi", "\"1\""},
                        {"abi", "\"1.x\""},
                        {"abi", "\"-1.0\""},
                        {"abi_hash", "\"00ff\""},
                        {"priority", "-1"},
                        {"priority", "high"},
                        {"platform", "\"a/b\""}}) {
    const auto m = parse_manifest(test::manifest_text("probe", c.key, c.value), "x.plugin.yaml");
    INFO(c.key << ": " << c.value);
    REQUIRE_FALSE(m.ok());
    CHECK_THAT(m.error().text, Contains("x.plugin.yaml:") && Contains(c.key));
  }
}

TEST_CASE("plugin/manifest: refuses missing and unknown keys") {
  const auto unknown = parse_manifest(test::manifest_text("probe") + "prioritty: 3\n", "x.plugin.yaml");
  REQUIRE_FALSE(unknown.ok());
  CHECK_THAT(unknown.error().text, Contains("prioritty") && Contains("priority"));
  const auto missing = parse_manifest("kind: backend\nname: probe\n", "x.plugin.yaml");
  REQUIRE_FALSE(missing.ok());
  CHECK_THAT(missing.error().text, Contains("version"));
  CHECK_FALSE(parse_manifest("- a\n- b\n", "x.plugin.yaml").ok());
  CHECK_FALSE(parse_manifest("", "x.plugin.yaml").ok());
}

TEST_CASE("plugin/manifest: refuses a file above 4 KiB and one that is no regular file") {
  const test::TempDir dir;
  const auto file = dir.path() / "big.plugin.yaml";
  std::string good = test::manifest_text("probe");
  test::write_file(file, good + "# " + std::string(kMaxManifestBytes - good.size() - 3, 'x') + "\n");
  CHECK(read_manifest(file).ok());
  test::write_file(file, good + "# " + std::string(kMaxManifestBytes - good.size() - 2, 'x') + "\n");
  const auto big = read_manifest(file);
  REQUIRE_FALSE(big.ok());
  CHECK_THAT(big.error().text, Contains("4096"));
  CHECK_FALSE(read_manifest(dir.path()).ok());
}
