// Cosines and sines of the rotation angles, made on the host in double precision and kept on the device.
#pragma once

#include "opencl_context.hpp"

namespace minfer::opencl {

struct RopeTable {
  SharedMem cos, sin;  // [n_positions][head_dim / 2] f32
};

// freq_factors: [head_dim / 2], or nullptr. Fills both with [n_positions - first_position][head_dim / 2]. Throws where an angle is out of
// range.
void rope_angles(int64_t first_position, int64_t n_positions, const mi_op_attrs& rope, const float* freq_factors, std::vector<float>& cos,
                 std::vector<float>& sin);

// The tables of a device: one per kind of rotation, made when first asked for.
class RopeTables {
 public:
  // freq_factors is the identity of the factors too: it stays as long as the weights.
  const RopeTable& get(const Context& context, int64_t n_positions, const mi_op_attrs& rope, const std::vector<float>* freq_factors);

 private:
  struct Entry {
    uint32_t head_dim;
    float freq_base, freq_scale;
    std::vector<float> factors;
    int64_t n_positions;
    RopeTable table;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace minfer::opencl
