#include "activations.hpp"

namespace minfer::cpu {

Activations::Ready Activations::place(const Worker& worker) const {
  Ready ready;
  ready.x = norm_weight ? reinterpret_cast<const float*>(base(worker) + norm_offset) : x;
  if (want_q8) ready.q8 = reinterpret_cast<const Q8Block*>(base(worker) + q8_offset);
  return ready;
}

bool Activations::prepare_row(const Worker& worker, size_t token) const {
  const float* rows = x;
  if (norm_weight) {
    float* normed = reinterpret_cast<float*>(base(worker) + norm_offset);
    worker.kernels.ops.rms_norm(x + token * cols, norm_weight, normed + token * cols, 1, static_cast<int64_t>(cols), eps);
    rows = normed;
  }
  if (!want_q8) return true;
  QuantizeArgs args;
  args.x = rows;
  args.x_stride = cols;
  args.cols = cols;
  args.n_tokens = n_tokens;
  args.token_begin = token;
  args.token_end = token + 1;
  args.block_begin = 0;
  args.block_end = cols / 32;
  args.out = reinterpret_cast<Q8Block*>(base(worker) + q8_offset);
  return worker.kernels.matmul.quantize(args);
}

Activations::Ready Activations::get(const Worker& worker) const {
  if (per_thread)
    for (size_t token = 0; token < n_tokens; ++token)
      if (!prepare_row(worker, token))
        worker.failure.set(worker.phase, MI_INVALID_ARGUMENT, "an activation is not finite", layer, static_cast<int64_t>(token));
  return place(worker);
}

void PreparePhase::run(const Worker& worker) {
  constexpr size_t kRowsAtOnce = 8;
  const size_t n = activations_.n_tokens;
  share(worker, (n + kRowsAtOnce - 1) / kRowsAtOnce, true, [&](size_t chunk) {
    for (size_t token = chunk * kRowsAtOnce; token < std::min(n, (chunk + 1) * kRowsAtOnce); ++token)
      if (!activations_.prepare_row(worker, token))
        worker.failure.set(worker.phase, MI_INVALID_ARGUMENT, "an activation is not finite", activations_.layer,
                           static_cast<int64_t>(token));
  });
}

}  // namespace minfer::cpu
