// A model loaded through the plugins of this build tree, for tests of whole forward passes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/session.hpp"
#include "runtime/model.hpp"

namespace minfer::test {

struct CpuOptions {
  unsigned threads = 2;
  std::string isa = "auto";
  KvFormat kv_format = KvFormat::kF16;
};

// The plugins of bin/plugins and the one of tests/plugins/remote.
std::unique_ptr<plugin::Registry> build_tree_plugins();
// For tests that call Model::load themselves: the cpu alone.
ModelOptions load_options(const std::filesystem::path& file, const CpuOptions& options);

// One backend for ModelOnBackends. gpu_layers < 0: as many as fit.
BackendSpec backend(std::string name, int gpu_layers = -1, plugin::Options options = {}, bool strict = false);

// A model on the given backends, best first; plugins of bin/plugins and the one of tests/plugins/remote can be named. Keeps the
// registry that the model needs.
class ModelOnBackends {
 public:
  // Fails the test when the model cannot be loaded.
  ModelOnBackends(const std::filesystem::path& file, std::vector<BackendSpec> backends, KvFormat kv_format = KvFormat::kF16);
  // Why the model cannot be loaded; fails the test when it can be.
  static std::string refusal(const std::filesystem::path& file, std::vector<BackendSpec> backends, KvFormat kv_format = KvFormat::kF16);

  const Model& operator*() const { return *model_; }
  const Model* operator->() const { return model_.get(); }
  // What was said while it was loaded, line by line.
  const std::vector<std::string>& notices() const { return notices_; }
  // A session of the model; n_ctx is lowered to what the model allows.
  std::unique_ptr<Session> session(uint32_t n_ctx, CParams cparams = {}) const;

 private:
  std::unique_ptr<plugin::Registry> registry_;
  std::vector<std::string> notices_;
  std::unique_ptr<Model> model_;
  KvFormat kv_format_;
};

// On the cpu alone.
class ModelOnCpu : public ModelOnBackends {
 public:
  explicit ModelOnCpu(const std::filesystem::path& file, const CpuOptions& options = {});
};

// Logits of the last n_out of the tokens, appended to sequence 0 in chunks of n_batch. Fails the test on an error.
std::vector<float> run_tokens(Session& session, const std::vector<int32_t>& tokens, uint32_t n_out, uint32_t n_batch = 512);

}  // namespace minfer::test
