// Shared by every program of the plugin; the host puts it in front of the other files. OpenCL C 1.2 without extensions.
//
// Rules of these kernels: no return before a barrier, barriers stand only in loops whose trip count a work-group shares, and every
// work-group has the size that its kernel demands. Products and sums round one by one (no contraction): where a fused multiply-add
// is meant it is written, so that results are those of the cpu backend.
#pragma OPENCL FP_CONTRACT OFF

#define WORK_GROUP(n) __attribute__((reqd_work_group_size(n, 1, 1)))

// A value of the graph: `memory` is the scratch buffer, `at` counts floats from its beginning.
#define VALUE(name) global float *name##_memory, ulong name##_at
#define VALUE_POINTER(name) (name##_memory + name##_at)

// ---- failures ----
// status[0]: code of the operation that failed first, 0 while none has; status[1]: its lowest failing row.
#define FAILED_NOT_FINITE 1
#define FAILED_BEYOND_FORMAT 2

void report_failure(volatile global int *status, int code, int row) {
  const int first = atomic_cmpxchg(&status[0], 0, code);
  if (first == 0 || first == code) atomic_min(&status[1], row);
}

// ---- arithmetic ----
// 16 partial sums, added as lanes i and i + 8, then + 4, + 2, + 1.
float sum_of_16(local const float *lanes) {
  float a[8];
  for (int i = 0; i < 8; ++i) a[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; ++i) a[i] = a[i] + a[i + 4];
  for (int i = 0; i < 2; ++i) a[i] = a[i] + a[i + 2];
  return a[0] + a[1];
}

// exp(x) with x limited to [-104, 89]: n = x / ln 2 rounded, r = x - n ln 2 in two steps, a polynomial in r, two powers of two so that
// subnormal results round once. The same operations as the cpu backend's, so the same bits.
float exp_f32(float x) {
  const float magic = 0x1.8p+23f;
  float limited = -104.0f > x ? -104.0f : x;
  limited = 89.0f < limited ? 89.0f : limited;
  const float shifted = fma(limited, 0x1.715476p+0f, magic);
  const float n = shifted - magic;
  const float r = fma(n, 0x1.05c61p-29f, fma(n, -0x1.62e43p-1f, limited));
  float q = 0x1.6d117cp-10f;
  q = fma(q, r, 0x1.120be2p-7f);
  q = fma(q, r, 0x1.555518p-5f);
  q = fma(q, r, 0x1.5554dcp-3f);
  q = fma(q, r, 0x1p-1f);
  const float p = fma(q, r * r, r) + 1.0f;
  const int exponent = as_int(shifted) - as_int(magic);
  const int half_exponent = exponent >> 1;
  return p * as_float((half_exponent + 127) << 23) * as_float((exponent - half_exponent + 127) << 23);
}
