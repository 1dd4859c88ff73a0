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

// Keeps the registry that the model needs. Fails the test when anything goes wrong.
class ModelOnCpu {
 public:
  explicit ModelOnCpu(const std::filesystem::path& file, const CpuOptions& options = {});

  const Model& operator*() const { return *model_; }
  const Model* operator->() const { return model_.get(); }
  // A session of the model; n_ctx is lowered to what the model allows.
  std::unique_ptr<Session> session(uint32_t n_ctx, CParams cparams = {}) const;

 private:
  std::unique_ptr<plugin::Registry> registry_;
  std::unique_ptr<Model> model_;
  KvFormat kv_format_;
};

// Logits of the last n_out of the tokens, appended to sequence 0 in chunks of n_batch. Fails the test on an error.
std::vector<float> run_tokens(Session& session, const std::vector<int32_t>& tokens, uint32_t n_out, uint32_t n_batch = 512);

}  // namespace minfer::test
