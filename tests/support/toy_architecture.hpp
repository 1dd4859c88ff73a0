// A tiny llama-like model with seeded random f32 weights, built as models of the llama family are: inputs first, the last layer cut to
// the rows whose logits are wanted, nothing behind the last KV store where none are.
#pragma once

#include <string_view>

#include "engine/architecture.hpp"
#include "engine/loaded_model.hpp"
#include "support/reference_device.hpp"

namespace minfer::test {

struct ToyOptions {
  uint32_t n_layers = 2;
  uint32_t n_embd = 32;
  uint32_t n_head = 4;
  uint32_t n_head_kv = 2;
  uint32_t head_dim = 8;
  uint32_t n_ff = 48;
  uint32_t n_vocab = 50;
  uint32_t n_ctx_train = 1024;
  uint32_t window = 0;
  float eps = 1e-5f;
  bool biases = true;
  bool tied = false;     // the output matrix is the embedding
  bool qk_norm = false;  // per-head norm of q and k, through views
  uint64_t seed = 1;
};

class ToyArchitecture final : public ModelArchitecture {
 public:
  explicit ToyArchitecture(const ToyOptions& options = {});

  const ModelInfo& info() const override { return info_; }
  const std::vector<WeightInfo>& weights() const override { return infos_; }
  Status build(const GraphParams& params, GraphBuilder& builder) override;

  const ToyOptions& options() const { return options_; }
  // Row-major [n_out][n_in]. The test fails when there is no such weight.
  const std::vector<float>& weight(std::string_view name) const;
  std::vector<std::span<const std::byte>> weight_data() const;

  uint64_t builds = 0;    // calls of build
  bool unstable = false;  // breaks the promise: every build differs from the one before

 private:
  uint32_t add(std::string name, uint32_t layer, uint32_t roles, const Shape& shape, float centre, float spread);
  uint32_t find(std::string_view name) const;  // kNone where the model has none

  ToyOptions options_;
  ModelInfo info_;
  std::vector<WeightInfo> infos_;
  std::vector<std::vector<float>> values_;
  uint64_t random_;
};

// A toy on reference devices. layer_counts: as for place_model.
struct ToyModel {
  explicit ToyModel(const ToyOptions& options = {}, const std::vector<ReferenceOptions>& device_options = {{}},
                    const LayerCounts& layer_counts = {});
  ReferenceDevice& device(size_t i = 0) { return *devices[i]; }

  ToyArchitecture architecture;
  std::vector<std::unique_ptr<ReferenceDevice>> devices;
  std::unique_ptr<LoadedModel> model;
};

// Parameters of toy sessions: f32 KV and n_ctx 256.
CParams toy_cparams(uint32_t n_ctx = 256, uint32_t max_seqs = 1);

// Deterministic token ids below 50.
std::vector<int32_t> toy_tokens(size_t n, uint32_t salt = 0);

}  // namespace minfer::test
