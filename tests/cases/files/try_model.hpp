// Loads a model file and uses it a little, whatever is in it: what a test of damaged files wants to know is where it ended.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "support/loaded_model.hpp"
#include "support/support.hpp"

namespace minfer::test {

enum class Ended { kLoading, kRunning, kDone };

struct Outcome {
  Ended ended = Ended::kLoading;
  std::string error;  // empty when done
};

// One folder, one registry and one file name for many tries.
class ModelTrier {
 public:
  ModelTrier() : registry_(build_tree_plugins()) {}

  // Writes the bytes to a file, loads it on the cpu backend, tokenizes a text and back, feeds n_prompt tokens and generates n_predict,
  // greedily.
  Outcome try_bytes(std::string_view bytes, uint32_t n_prompt, int32_t n_predict);
  std::filesystem::path path() const { return dir_.path() / "model.gguf"; }

 private:
  TempDir dir_;
  std::unique_ptr<plugin::Registry> registry_;
};

}  // namespace minfer::test
