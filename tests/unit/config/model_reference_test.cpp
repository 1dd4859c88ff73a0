// The order in which a model reference is resolved, and what the user is told when it is not.
#include "config/model_reference.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "support/support.hpp"

using namespace minfer;
namespace fs = std::filesystem;

namespace {

// base/ is the folder of the YAML file, models/ the model directory, home/ the user's.
struct Tree {
  Tree() {
    for (const char* folder : {"base/sub", "models/a-folder", "home", "empty"}) fs::create_directories(root() / folder);
    for (const char* file : {"base/here.gguf", "base/sub/deep.gguf", "home/h.gguf", "models/here.gguf", "models/exact", "models/notes.txt",
                             "models/smol.gguf", "models/smol-chat.gguf", "models/qwen2-0.5b-q4.gguf", "models/qwen2-0.5b-q8.gguf"})
      test::write_file(root() / file, "x");
  }
  const fs::path& root() const { return dir.path(); }
  Result<fs::path> resolve(std::string text, std::string where = "c.yaml:2:8") const {
    return resolve_model({std::move(text), root() / "base", std::move(where)}, {root() / "models", root() / "home"});
  }
  std::string found(std::string text) const {
    const auto path = resolve(std::move(text));
    if (!path.ok()) FAIL(path.error().text);
    return fs::relative(*path, root()).string();
  }
  std::string refusal(std::string text) const {
    const auto path = resolve(std::move(text));
    REQUIRE_FALSE(path.ok());
    return path.error().text;
  }
  test::TempDir dir;
};

}  // namespace

TEST_CASE("config/model_reference: resolves paths and then names in the documented order", "[config]") {
  const Tree t;
  CHECK(t.found((t.root() / "home/h.gguf").string()) == "home/h.gguf");
  CHECK(t.found("./here.gguf") == "base/here.gguf");
  CHECK(t.found("../models/smol.gguf") == "models/smol.gguf");
  CHECK(t.found("~/h.gguf") == "home/h.gguf");
  CHECK(t.found("sub/deep.gguf") == "base/sub/deep.gguf");
  CHECK(t.found("here.gguf") == "base/here.gguf");  // a relative path comes before the model directory
  CHECK(t.found("qwen2-0.5b-q8.gguf") == "models/qwen2-0.5b-q8.gguf");
  CHECK(t.found("exact") == "models/exact");
  CHECK(t.found("smol") == "models/smol.gguf");  // with .gguf it is exact, though smol-chat begins so too
  CHECK(t.found("smol-") == "models/smol-chat.gguf");
}

TEST_CASE("config/model_reference: lists the candidates of an ambiguous name", "[config]") {
  const Tree t;
  CHECK(t.refusal("qwen2") == "c.yaml:2:8: model: 'qwen2' is ambiguous; it may be: qwen2-0.5b-q4.gguf, qwen2-0.5b-q8.gguf");
}

TEST_CASE("config/model_reference: says what is missing and what to run", "[config]") {
  const Tree t;
  CHECK(t.refusal("llama") == "c.yaml:2:8: model: 'llama' is neither a file in " + (t.root() / "base").string() + " nor a model in " +
                                  (t.root() / "models").string() +
                                  " (there are: here.gguf, qwen2-0.5b-q4.gguf, qwen2-0.5b-q8.gguf, smol-chat.gguf, smol.gguf); "
                                  "run scripts/fetch-model to get one");
  CHECK(t.resolve("llama").error().code == ErrorCode::kNotFound);
  CHECK(t.refusal("notes").find("is neither a file") != std::string::npos);     // a prefix must end in .gguf
  CHECK(t.refusal("a-folder").find("is neither a file") != std::string::npos);  // and be a file
  CHECK(t.refusal("./none.gguf") == "c.yaml:2:8: model: file " + (t.root() / "base/none.gguf").string() + " does not exist");
  CHECK(t.refusal("./smol.gguf").find("does not exist") != std::string::npos);  // a path is never looked up as a name
  CHECK(t.refusal("sub/none.gguf") == "c.yaml:2:8: model: file " + (t.root() / "base/sub/none.gguf").string() + " does not exist");
  CHECK(t.refusal("/dev/null") == "c.yaml:2:8: model: /dev/null is not a regular file");
  CHECK(t.refusal("~other/x").find("'~' is only expanded as ~/ of the current user") != std::string::npos);
  CHECK(t.refusal(std::string("a\0b", 3)).find("zero byte") != std::string::npos);
  CHECK(t.refusal("") == "c.yaml:2:8: model: not set; give -m MODEL or this key in the configuration");
  CHECK(t.resolve("", "").error().text == "model: not set; give -m MODEL or this key in the configuration");
  const auto no_dir = resolve_model({"x", t.root() / "base", "-m"}, {t.root() / "gone", ""});
  CHECK(no_dir.error().text.find("-m: model: 'x' is neither") == 0);
  CHECK(no_dir.error().text.find("(no models there); run scripts/fetch-model") != std::string::npos);
  CHECK_FALSE(resolve_model({"~/h.gguf", t.root(), ""}, {t.root(), ""}).ok());
}

TEST_CASE("config/model_reference: names the files of a folder", "[config]") {
  const Tree t;
  CHECK(t.refusal("../models").find("is a folder; name one of its files: here.gguf, qwen2-0.5b-q4.gguf") != std::string::npos);
  CHECK(t.refusal("../empty").find("is a folder without .gguf files") != std::string::npos);
}
