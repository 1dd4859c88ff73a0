// Which file a model reference names. Reads folders, never the files themselves.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace minfer {

// A model as the user wrote it.
struct ModelReference {
  std::string text;
  std::filesystem::path base_dir;  // relative paths start here: the folder of the YAML file, or the current one
  std::string where;               // "run.yaml:2:8" or "-m": put in front of messages; may be empty
};

struct ModelSearch {
  std::filesystem::path model_dir;  // holds models that are given by name; may be missing
  std::filesystem::path home;       // what a leading ~/ stands for; empty: refused
};

// In this order, the first that applies decides:
//   1. text beginning with / . or ~ is a path that must exist;
//   2. a relative path (from base_dir) that is a file;
//   3. a name in model_dir: the file itself, the file with .gguf appended, or the only .gguf file whose name begins so.
// Several files for 3 are an error that lists them; none is an error that says how to fetch a model.
[[nodiscard]] Result<std::filesystem::path> resolve_model(const ModelReference& reference, const ModelSearch& search);

}  // namespace minfer
