#include "plugin/report.hpp"

#include <catch2/catch.hpp>

using namespace minfer;
using namespace minfer::plugin;
using Catch::Matchers::Contains;

TEST_CASE("plugin/report: names the file and the stage and what to do") {
  const Record record{"/opt/minfer/lib/minfer/plugins/minfer-backend-cuda.plugin.yaml", Stage::kAbi, ErrorCode::kUnsupported,
                      "plugin needs core ABI >= 1.4, this core provides 1.2", "upgrade minfer, or install cuda plugin 0.9.x"};
  const Error error = not_usable({Kind::kBackend, "cuda", "qwen2.yaml:7", {"cpu"}, {"cpu", "cuda"}, {}}, record);
  CHECK(error.code == ErrorCode::kUnsupported);
  CHECK(error.text ==
        "backend 'cuda' (qwen2.yaml:7) is not usable\n"
        "  tried  /opt/minfer/lib/minfer/plugins/minfer-backend-cuda.plugin.yaml\n"
        "  stage  abi: plugin needs core ABI >= 1.4, this core provides 1.2\n"
        "  do     upgrade minfer, or install cuda plugin 0.9.x   (available here: cpu; `minfer-plugins --why cuda` for all candidates)");
}

TEST_CASE("plugin/report: a misspelt name gets the nearest one") {
  const Error error = not_installed({Kind::kBackend, "cdua", "", {"cpu"}, {"cpu", "cuda"}, {"/a"}});
  CHECK(error.code == ErrorCode::kNotFound);
  CHECK_THAT(error.text, Contains("'cdua' is not known") && Contains("did you mean 'cuda'?") && Contains("available here: cpu)"));
}

TEST_CASE("plugin/report: a name that is not installed says where we looked") {
  const Error error = not_installed({Kind::kArchitecture, "mamba", "model.yaml:2", {"qwen2"}, {"qwen2"}, {"/a/plugins", "/b"}});
  CHECK_THAT(error.text, Contains("architecture 'mamba' (model.yaml:2) is not installed") && Contains("looked /a/plugins") &&
                             Contains("looked /b") && Contains("minfer-arch-mamba") && !Contains("did you mean"));
  CHECK_THAT(not_installed({Kind::kBackend, "x", "", {}, {}, {}}).text, Contains("available here: none"));
}
