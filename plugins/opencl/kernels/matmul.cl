// Matrix products and embedding rows, over weights in the layout of gguf_tiles.hpp: 32 rows of a matrix side by side, so that the
// work-items of a group read neighbouring words.
//
// Quantised, blocks of 32 columns ascending, isum = sum of scale * q * a an exact integer, da * (sum of a) rounded once:
//   types of 32 columns: acc = fma(d * da, isum, acc), then acc = fma(m, da * (sum of a), acc) where there is a min;
//   K types, per 256 columns: scaled = fma(da, isum, scaled), mins = fma(min, da * (sum of a), mins), where each 16 columns have a min
//   of their own fma(da, sum of min * a, mins); then acc = fma(d, scaled, acc) and acc = fma(-m, mins, acc).
// Float types: acc = fma(w, x, acc), columns ascending.

#define TILE_ROWS 32
#define LINE 64  // bytes of one f16 or of two byte values for each row of a tile

// 32 activations as integers: x ~ scale * q. sums: of q over columns 0..15 and 16..31.
kernel WORK_GROUP(64) void quantize(VALUE(x), global char *q, global float *scale, global int2 *sums, ulong n_blocks, uint blocks_per_row,
                                    volatile global int *status, int failure_code) {
  const ulong block = get_global_id(0);
  if (block >= n_blocks) return;
  global const float *in = VALUE_POINTER(x) + block * 32;
  float largest = 0.0f;
  int finite = 1;
  for (int k = 0; k < 32; ++k) {
    const float magnitude = fabs(in[k]);
    finite &= magnitude <= FLT_MAX;  // false for NaN too
    largest = magnitude > largest ? magnitude : largest;
  }
  if (!finite) report_failure(status, failure_code, (int)(block / blocks_per_row));
  const int tiny = !finite || largest < 0x1p-100f;
  const float inverse = tiny ? 0.0f : 127.0f / largest;
  int2 sum = (int2)(0, 0);
  for (int k = 0; k < 32; ++k) {
    const int value = tiny ? 0 : (int)rint(in[k] * inverse);
    q[block * 32 + k] = (char)value;
    if (k < 16)
      sum.x += value;
    else
      sum.y += value;
  }
  scale[block] = tiny ? 0.0f : largest / 127.0f;
  sums[block] = sum;
}

// Sum of four products of signed bytes.
int dot4(int w, int a) {
  return (int)(char)w * (int)(char)a + (int)(char)(w >> 8) * (int)(char)(a >> 8) + (int)(char)(w >> 16) * (int)(char)(a >> 16) +
         (w >> 24) * (a >> 24);
}

// A work-item owns one row and up to N_TOKENS tokens; tokens beyond the last read the last one and write nothing.
// MINS: 0 for types without, 1 for one min per block, 2 for one per 16 columns.
#define DEFINE_MATMUL_QUANTISED(NAME, N_TOKENS, MINS, HAS_SUB)                                                                       \
  kernel WORK_GROUP(TILE_ROWS) void NAME(global const uchar *weights, uint n_blocks, uint n_rows, global const int *q,               \
                                         global const float *scale, global const int2 *sums, uint n_tokens, global const float *bias,\
                                         uint has_bias, VALUE(y)) {                                                                  \
    const uint r = get_local_id(0);                                                                                                  \
    const uint row = get_global_id(0);                                                                                               \
    const uint first = get_group_id(1) * N_TOKENS;                                                                                   \
    const ulong tile_bytes = 32 * TILE_ROWS + LINE * (1 + (MINS > 0) + HAS_SUB + (MINS > 0 && HAS_SUB));                             \
    global const uchar *tile = weights + (ulong)get_group_id(0) * n_blocks * tile_bytes;                                             \
    float acc[N_TOKENS], scaled[N_TOKENS], mins[N_TOKENS];                                                                           \
    for (int t = 0; t < N_TOKENS; ++t) acc[t] = scaled[t] = mins[t] = 0.0f;                                                          \
    for (uint b = 0; b < n_blocks; ++b, tile += tile_bytes) {                                                                        \
      global const int *words = (global const int *)tile;                                                                            \
      int w[8];                                                                                                                      \
      for (int j = 0; j < 8; ++j) w[j] = words[j * TILE_ROWS + r];                                                                   \
      global const uchar *line = tile + 32 * TILE_ROWS;                                                                              \
      const float d = vload_half(r, (global const half *)line);                                                                      \
      float m = 0.0f;                                                                                                                \
      if (MINS) m = vload_half(r, (global const half *)(line + LINE));                                                               \
      global const uchar *sub = line + LINE * (1 + (MINS > 0));                                                                      \
      const int scale0 = HAS_SUB ? (int)(char)sub[r] : 1, scale1 = HAS_SUB ? (int)(char)sub[TILE_ROWS + r] : 1;                      \
      const int min0 = HAS_SUB && MINS ? (int)sub[LINE + r] : 1, min1 = HAS_SUB && MINS ? (int)sub[LINE + TILE_ROWS + r] : 1;        \
      for (int t = 0; t < N_TOKENS; ++t) {                                                                                           \
        const ulong block = (ulong)min(first + t, n_tokens - 1) * n_blocks + b;                                                      \
        global const int *a = q + block * 8;                                                                                         \
        const int low = dot4(w[0], a[0]) + dot4(w[1], a[1]) + dot4(w[2], a[2]) + dot4(w[3], a[3]);                                   \
        const int high = dot4(w[4], a[4]) + dot4(w[5], a[5]) + dot4(w[6], a[6]) + dot4(w[7], a[7]);                                  \
        const float da = scale[block], isum = (float)(scale0 * low + scale1 * high);                                                 \
        const float scaled_sum = da * (float)(sums[block].x + sums[block].y);                                                        \
        if (!HAS_SUB) {                                                                                                              \
          acc[t] = fma(d * da, isum, acc[t]);                                                                                        \
          if (MINS) acc[t] = fma(m, scaled_sum, acc[t]);                                                                             \
          continue;                                                                                                                  \
        }                                                                                                                            \
        scaled[t] = fma(da, isum, scaled[t]);                                                                                        \
        if (MINS == 1) mins[t] = fma((float)min0, scaled_sum, mins[t]);                                                              \
        if (MINS == 2) mins[t] = fma(da, (float)(min0 * sums[block].x + min1 * sums[block].y), mins[t]);                             \
        if (b % 8 < 7) continue;                                                                                                     \
        acc[t] = fma(d, scaled[t], acc[t]);                                                                                          \
        if (MINS) acc[t] = fma(-m, mins[t], acc[t]);                                                                                 \
        scaled[t] = mins[t] = 0.0f;                                                                                                  \
      }                                                                                                                              \
    }                                                                                                                                \
    for (int t = 0; t < N_TOKENS; ++t)                                                                                               \
      if (row < n_rows && first + t < n_tokens)                                                                                      \
        VALUE_POINTER(y)[(ulong)(first + t) * n_rows + row] = has_bias ? acc[t] + bias[row] : acc[t];                                \
  }

DEFINE_MATMUL_QUANTISED(matmul_q_1, 1, 0, 0)
DEFINE_MATMUL_QUANTISED(matmul_q_8, 8, 0, 0)
DEFINE_MATMUL_QUANTISED(matmul_q_min_1, 1, 1, 0)
DEFINE_MATMUL_QUANTISED(matmul_q_min_8, 8, 1, 0)
DEFINE_MATMUL_QUANTISED(matmul_k_1, 1, 0, 1)
DEFINE_MATMUL_QUANTISED(matmul_k_8, 8, 0, 1)
DEFINE_MATMUL_QUANTISED(matmul_k_min_1, 1, 1, 1)
DEFINE_MATMUL_QUANTISED(matmul_k_min_8, 8, 1, 1)
DEFINE_MATMUL_QUANTISED(matmul_k_mins_1, 1, 2, 1)
DEFINE_MATMUL_QUANTISED(matmul_k_mins_8, 8, 2, 1)

float load_f32(global const uchar *weights, ulong i) { return ((global const float *)weights)[i]; }
float load_f16(global const uchar *weights, ulong i) { return vload_half(i, (global const half *)weights); }
float load_bf16(global const uchar *weights, ulong i) { return as_float((uint)((global const ushort *)weights)[i] << 16); }

#define DEFINE_MATMUL_FLOAT(NAME, N_TOKENS, LOAD)                                                                                \
  kernel WORK_GROUP(TILE_ROWS) void NAME(global const uchar *weights, uint n_cols, uint n_rows, VALUE(x), uint n_tokens,         \
                                         global const float *bias, uint has_bias, VALUE(y)) {                                    \
    const uint row = get_global_id(0);                                                                                           \
    const uint first = get_group_id(1) * N_TOKENS;                                                                               \
    const ulong tile = (ulong)get_group_id(0) * n_cols * TILE_ROWS + get_local_id(0);                                            \
    float acc[N_TOKENS];                                                                                                         \
    for (int t = 0; t < N_TOKENS; ++t) acc[t] = 0.0f;                                                                            \
    for (uint k = 0; k < n_cols; ++k) {                                                                                          \
      const float w = LOAD(weights, tile + (ulong)k * TILE_ROWS);                                                                \
      for (int t = 0; t < N_TOKENS; ++t)                                                                                         \
        acc[t] = fma(w, VALUE_POINTER(x)[(ulong)min(first + t, n_tokens - 1) * n_cols + k], acc[t]);                             \
    }                                                                                                                            \
    for (int t = 0; t < N_TOKENS; ++t)                                                                                           \
      if (row < n_rows && first + t < n_tokens)                                                                                  \
        VALUE_POINTER(y)[(ulong)(first + t) * n_rows + row] = has_bias ? acc[t] + bias[row] : acc[t];                            \
  }

DEFINE_MATMUL_FLOAT(matmul_f32_1, 1, load_f32)
DEFINE_MATMUL_FLOAT(matmul_f32_8, 8, load_f32)
DEFINE_MATMUL_FLOAT(matmul_f16_1, 1, load_f16)
DEFINE_MATMUL_FLOAT(matmul_f16_8, 8, load_f16)
DEFINE_MATMUL_FLOAT(matmul_bf16_1, 1, load_bf16)
DEFINE_MATMUL_FLOAT(matmul_bf16_8, 8, load_bf16)

// ---- rows of a weight as f32, by number: one element per work-item ----
#define DEFINE_GET_ROWS_FLOAT(NAME, LOAD)                                                                                          \
  kernel WORK_GROUP(64) void NAME(global const uchar *weights, global const int *ids, VALUE(y), uint n, ulong n_elements) {        \
    const ulong i = get_global_id(0);                                                                                              \
    if (i >= n_elements) return;                                                                                                   \
    const uint row = (uint)ids[i / n];                                                                                             \
    VALUE_POINTER(y)[i] = LOAD(weights, ((ulong)(row / TILE_ROWS) * n + i % n) * TILE_ROWS + row % TILE_ROWS);                     \
  }

DEFINE_GET_ROWS_FLOAT(get_rows_f32, load_f32)
DEFINE_GET_ROWS_FLOAT(get_rows_f16, load_f16)
DEFINE_GET_ROWS_FLOAT(get_rows_bf16, load_bf16)

// Scale product first, then the integer, then the min: the order in which the file formats are defined.
kernel WORK_GROUP(64) void get_rows_quantised(global const uchar *weights, global const int *ids, VALUE(y), uint n, ulong n_elements,
                                              uint has_min, uint has_sub) {
  const ulong i = get_global_id(0);
  if (i >= n_elements) return;
  const uint row = (uint)ids[i / n], column = (uint)(i % n), r = row % TILE_ROWS;
  const uint lines = 1 + has_min + has_sub + has_min * has_sub;
  global const uchar *tile = weights + ((ulong)(row / TILE_ROWS) * (n / 32) + column / 32) * (32 * TILE_ROWS + LINE * lines);
  global const uchar *line = tile + 32 * TILE_ROWS;
  const float value = (float)(char)tile[(column % 32 / 4 * TILE_ROWS + r) * 4 + column % 4];
  const float d = vload_half(r, (global const half *)line);
  const float m = has_min ? vload_half(r, (global const half *)(line + LINE)) : 0.0f;
  global const uchar *sub = line + LINE * (1 + has_min) + column % 32 / 16 * TILE_ROWS + r;
  float y = d * value;
  if (has_sub) y = d * (float)(char)sub[0] * value;
  if (has_min) y = has_sub ? y - m * (float)sub[LINE] : y + m;
  VALUE_POINTER(y)[i] = y;
}
