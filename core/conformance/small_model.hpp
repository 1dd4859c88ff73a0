// A transformer of two layers, small enough to run often: what graph cases build their graphs from.
#pragma once

#include "conformance/kv_fixture.hpp"

namespace minfer::conformance {

struct SmallModelForm {
  uint32_t dtype = MI_TYPE_F32;
  KvFormat kv_format = KvFormat::kF32;
  RopeKind rope = RopeKind::kSplitHalves;
  bool bias = true;
  bool factors = false;
};

class SmallModel {
 public:
  static constexpr uint32_t kLayers = 2, kHeads = 4, kKvHeads = 2, kHeadDim = 64, kWidth = 256, kFfn = 512, kVocab = 40;
  static constexpr uint32_t kContext = 192, kSeqs = 2;

  // Weights and the places of KV blocks are drawn from `random`.
  SmallModel(const SmallModelForm& form, Random& random);

  // Tokens at consecutive positions of one sequence, or any rows; the last row's logits, or those of all rows.
  struct Batch {
    std::vector<int32_t> tokens;
    std::vector<BatchRow> rows;
  };
  Batch batch(Random& random, uint32_t n, int32_t seq, uint32_t first_position) const;

  struct Shape {
    bool fused = false;     // FUSED_QKV and FUSED_FFN in place of their chains
    bool observed = false;  // every value is kept and has memory of its own
  };
  // Its one output that nothing reads: logits [kVocab, rows].
  Problem problem(const Batch& batch, const Shape& shape) const;
  // The data of another batch with as many rows.
  static void set_batch(Problem& problem, const Batch& batch);

  ReferenceKvs reference_kvs() const;
  Result<DeviceKvs> device_kvs(Device& device) const;
  // Whether the device supports every node of the problem; kUnsupported if not.
  static Status check_supported(Device& device, const Problem& problem);
  static ValueId logits(const Problem& problem) { return problem.graph().nodes.back().outputs[0]; }

 private:
  struct Layer {
    Tensor norm, q, k, v, bq, bk, bv, o, ffn_norm, gate, up, down;
  };
  KvLayout kv_layout() const;

  SmallModelForm form_;
  Tensor embedding_, factors_, norm_, output_;
  std::vector<Layer> layers_;
  std::vector<int32_t> table_;
};

}  // namespace minfer::conformance
