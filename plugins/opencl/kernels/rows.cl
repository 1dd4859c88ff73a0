// Operations on rows and elements: norm, rotation, element-wise, rows by number.

// y = x * (1 / sqrt(mean of squares + eps)) * weight. One work-group per row of n.
kernel WORK_GROUP(64) void rms_norm(VALUE(x), global const float *weight, VALUE(y), uint n, float eps) {
  const uint lane = get_local_id(0);
  global const float *in = VALUE_POINTER(x) + (ulong)get_group_id(0) * n;
  global float *out = VALUE_POINTER(y) + (ulong)get_group_id(0) * n;
  local float lanes[16];
  if (lane < 16) {
    float sum = 0.0f;
    for (uint i = lane; i < n; i += 16) sum = fma(in[i], in[i], sum);
    lanes[lane] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);  // y may be x
  const float mean = sum_of_16(lanes) / (float)n;
  const float factor = 1.0f / sqrt(mean + eps);
  for (uint i = lane; i < n; i += 64) out[i] = in[i] * factor * weight[i];
}

kernel WORK_GROUP(64) void add(VALUE(a), VALUE(b), VALUE(y), ulong n) {
  const ulong i = get_global_id(0);
  if (i < n) VALUE_POINTER(y)[i] = VALUE_POINTER(a)[i] + VALUE_POINTER(b)[i];
}

kernel WORK_GROUP(64) void mul(VALUE(a), VALUE(b), VALUE(y), ulong n) {
  const ulong i = get_global_id(0);
  if (i < n) VALUE_POINTER(y)[i] = VALUE_POINTER(a)[i] * VALUE_POINTER(b)[i];
}

kernel WORK_GROUP(64) void silu(VALUE(x), VALUE(y), ulong n) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  const float x = VALUE_POINTER(x)[i];
  VALUE_POINTER(y)[i] = x / (1.0f + exp_f32(-x));
}

// Rows by number: y[i] = x[ids[i]]. The host has checked the numbers.
kernel WORK_GROUP(64) void select_rows(VALUE(x), global const int *ids, VALUE(y), uint n, ulong n_elements) {
  const ulong i = get_global_id(0);
  if (i < n_elements) VALUE_POINTER(y)[i] = VALUE_POINTER(x)[(ulong)ids[i / n] * n + i % n];
}

// One pair (a, b) of a head per work-item: a' = a cos - b sin, b' = a sin + b cos. cos, sin: [n_positions][half].
kernel WORK_GROUP(64) void rope(VALUE(x), VALUE(y), global const int *positions, global const float *cos_table,
                                global const float *sin_table, uint n_head, uint half_dim, uint interleaved, ulong n_pairs) {
  const ulong pair = get_global_id(0);
  if (pair >= n_pairs) return;
  const uint i = (uint)(pair % half_dim);
  const ulong head = pair / half_dim;  // of all rows
  const ulong angle = (ulong)positions[head / n_head] * half_dim + i;
  const ulong first = head * 2 * half_dim + (interleaved ? 2 * i : i);
  const ulong second = first + (interleaved ? 1 : half_dim);
  const float c = cos_table[angle], s = sin_table[angle];
  const float a = VALUE_POINTER(x)[first], b = VALUE_POINTER(x)[second];
  VALUE_POINTER(y)[first] = fma(a, c, -(b * s));
  VALUE_POINTER(y)[second] = fma(a, s, b * c);
}
