// K and V regions: storing, moving and turning rows, and attention over them. Built once per format: KV_FORMAT is 0 for f32, 1 for
// f16, 8 for q8_0 (the numbers of the tensor types).
//
// Inside a (block, kv head) of 64 positions:  K: [head_dim][64], so that neighbouring work-items read neighbouring positions;
// V: [64][head_dim].  q8_0: bytes in that order, then one f16 scale per 32 elements, K: [head_dim / 32][64], V: [64][head_dim / 32].
// An element of q8_0 is scale * q, rounded once.

#define KV_BLOCK 64
#define CHUNK 256     // positions whose softmax is taken at once
#define MAX_HEAD 256  // elements of a head

#if KV_FORMAT == 8
#define HEAD_BYTES(head_dim) ((ulong)KV_BLOCK * ((head_dim) + (head_dim) / 32 * 2))
#elif KV_FORMAT == 1
#define HEAD_BYTES(head_dim) ((ulong)KV_BLOCK * (head_dim) * 2)
#else
#define HEAD_BYTES(head_dim) ((ulong)KV_BLOCK * (head_dim) * 4)
#endif

// Index of element d of position p inside its (block, head), and of its scale.
uint k_index(uint p, uint d, uint head_dim) { return d * KV_BLOCK + p; }
uint v_index(uint p, uint d, uint head_dim) { return p * head_dim + d; }
uint k_scale(uint p, uint d, uint head_dim) { return d / 32 * KV_BLOCK + p; }
uint v_scale(uint p, uint d, uint head_dim) { return p * (head_dim / 32) + d / 32; }

float load_element(global const uchar *head, uint index, uint scale_index, uint head_dim) {
#if KV_FORMAT == 8
  const float scale = vload_half(scale_index, (global const half *)(head + KV_BLOCK * head_dim));
  return scale * (float)(char)head[index];
#elif KV_FORMAT == 1
  return vload_half(index, (global const half *)head);
#else
  return ((global const float *)head)[index];
#endif
}

// 0, or FAILED_*: whether x can be stored.
int judge(float x) {
  const float magnitude = fabs(x);
  if (!(magnitude <= FLT_MAX)) return FAILED_NOT_FINITE;
#if KV_FORMAT == 1
  if (magnitude > 65504.0f) return FAILED_BEYOND_FORMAT;
#elif KV_FORMAT == 8
  if (magnitude > 127.0f * 65504.0f) return FAILED_BEYOND_FORMAT;
#endif
  return 0;
}

// The whole work-group stores one head x[head_dim] of K or V at position p of its block.
void store_head(local const float *x, global uchar *head, uint p, uint head_dim, int is_k) {
#if KV_FORMAT == 8
  global half *scales = (global half *)(head + KV_BLOCK * head_dim);
  for (uint g = get_local_id(0); g < head_dim / 32; g += get_local_size(0)) {
    float largest = 0.0f;
    for (uint i = 0; i < 32; ++i) {
      const float magnitude = fabs(x[g * 32 + i]);
      largest = magnitude > largest ? magnitude : largest;
    }
    const uint at = is_k ? k_scale(p, g * 32, head_dim) : v_scale(p, g * 32, head_dim);
    vstore_half_rte(largest / 127.0f, at, scales);
    const float scale = vload_half(at, scales);
    for (uint d = g * 32; d < g * 32 + 32; ++d) {
      float q = 0.0f;  // a scale that rounds to zero stores zeros
      if (scale != 0.0f) q = clamp(rint(x[d] / scale), -127.0f, 127.0f);
      head[is_k ? k_index(p, d, head_dim) : v_index(p, d, head_dim)] = (uchar)(char)(int)q;
    }
  }
#else
  for (uint d = get_local_id(0); d < head_dim; d += get_local_size(0)) {
    const uint at = is_k ? k_index(p, d, head_dim) : v_index(p, d, head_dim);
#if KV_FORMAT == 1
    vstore_half_rte(x[d], at, (global half *)head);
#else
    ((global float *)head)[at] = x[d];
#endif
  }
#endif
}

// One work-group per (kv head, row of the batch). A row of sequence -1 stores nothing; the host has checked positions and blocks.
kernel WORK_GROUP(64) void kv_store(VALUE(k), VALUE(v), global uchar *k_region, global uchar *v_region, global const int *positions,
                                    global const int *row_seq, global const int *table, uint table_width, uint n_head_kv, uint head_dim,
                                    volatile global int *status, int not_finite_code, int beyond_code) {
  local float x[MAX_HEAD];
  const uint head = get_group_id(0), row = get_group_id(1), lane = get_local_id(0);
  const int live = row_seq[row] >= 0;
  const uint p = live ? (uint)positions[row] : 0;
  const uint block = live ? (uint)table[(uint)row_seq[row] * table_width + p / KV_BLOCK] : 0;
  const ulong region_at = ((ulong)block * n_head_kv + head) * HEAD_BYTES(head_dim);
  for (int is_k = 1; is_k >= 0; --is_k) {
    global const float *in = (is_k ? VALUE_POINTER(k) : VALUE_POINTER(v)) + ((ulong)row * n_head_kv + head) * head_dim;
    for (uint d = lane; d < head_dim; d += 64) {
      x[d] = in[d];
      const int bad = judge(in[d]);
      if (live && bad) report_failure(status, bad == FAILED_NOT_FINITE ? not_finite_code : beyond_code, (int)row);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (live) store_head(x, (is_k ? k_region : v_region) + region_at, p % KV_BLOCK, head_dim, is_k);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

// Copies rows in their order: cells[2i] to cells[2i + 1], a cell being block * 64 + row. A work-item moves one element (or one q8_0
// scale) of all rows, so that a row may be read and written again later in the list.
kernel WORK_GROUP(64) void kv_copy(global uchar *k_region, global uchar *v_region, global const uint *cells, uint n_cells, uint n_head_kv,
                                   uint head_dim) {
  const uint unit = get_global_id(0);
#if KV_FORMAT == 8
  const uint n_scales = head_dim / 32;
#else
  const uint n_scales = 0;
#endif
  const uint head = unit / (head_dim + n_scales), e = unit % (head_dim + n_scales);
  if (head >= n_head_kv) return;
  for (uint i = 0; i < n_cells; ++i) {
    const uint from = cells[2 * i], to = cells[2 * i + 1];
    const ulong from_at = ((ulong)(from / KV_BLOCK) * n_head_kv + head) * HEAD_BYTES(head_dim);
    const ulong to_at = ((ulong)(to / KV_BLOCK) * n_head_kv + head) * HEAD_BYTES(head_dim);
    const uint from_p = from % KV_BLOCK, to_p = to % KV_BLOCK;
#if KV_FORMAT == 8
    if (e >= head_dim) {
      const uint d = (e - head_dim) * 32;
      const uint scales = KV_BLOCK * head_dim;
      ((global ushort *)(k_region + to_at + scales))[k_scale(to_p, d, head_dim)] =
          ((global const ushort *)(k_region + from_at + scales))[k_scale(from_p, d, head_dim)];
      ((global ushort *)(v_region + to_at + scales))[v_scale(to_p, d, head_dim)] =
          ((global const ushort *)(v_region + from_at + scales))[v_scale(from_p, d, head_dim)];
    } else {
      (k_region + to_at)[k_index(to_p, e, head_dim)] = (k_region + from_at)[k_index(from_p, e, head_dim)];
      (v_region + to_at)[v_index(to_p, e, head_dim)] = (v_region + from_at)[v_index(from_p, e, head_dim)];
    }
#else
#if KV_FORMAT == 1
#define STORED ushort
#else
#define STORED uint
#endif
    ((global STORED *)(k_region + to_at))[k_index(to_p, e, head_dim)] =
        ((global const STORED *)(k_region + from_at))[k_index(from_p, e, head_dim)];
    ((global STORED *)(v_region + to_at))[v_index(to_p, e, head_dim)] =
        ((global const STORED *)(v_region + from_at))[v_index(from_p, e, head_dim)];
#endif
  }
}

// Turns stored keys by one angle, [half] cosines and sines. One work-group per (kv head, cell). With write 0 it only judges.
kernel WORK_GROUP(64) void kv_rotate(global uchar *k_region, global const uint *cells, global const float *cosines,
                                     global const float *sines, uint interleaved, uint n_head_kv, uint head_dim, uint write,
                                     volatile global int *status) {
  local float x[MAX_HEAD];
  const uint head = get_group_id(0), cell = cells[get_group_id(1)], lane = get_local_id(0), half_dim = head_dim / 2;
  global uchar *stored = k_region + ((ulong)(cell / KV_BLOCK) * n_head_kv + head) * HEAD_BYTES(head_dim);
  const uint p = cell % KV_BLOCK;
  for (uint i = lane; i < half_dim; i += 64) {
    const uint first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half_dim;
    const float a = load_element(stored, k_index(p, first, head_dim), k_scale(p, first, head_dim), head_dim);
    const float b = load_element(stored, k_index(p, second, head_dim), k_scale(p, second, head_dim), head_dim);
    const float turned_a = fma(a, cosines[i], -(b * sines[i])), turned_b = fma(a, sines[i], b * cosines[i]);
    const int bad = max(judge(turned_a), judge(turned_b));
    if (bad) report_failure(status, bad, (int)get_group_id(1));
    x[first] = turned_a;
    x[second] = turned_b;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (write) store_head(x, stored, p, head_dim, 1);
}

// The value of `mine` that is largest in the work-group of 64.
float largest_of_group(float mine, local float *shared) {
  shared[get_local_id(0)] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  float largest = shared[0];
  for (int i = 1; i < 64; ++i) largest = shared[i] > largest ? shared[i] : largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  return largest;
}

// One work-group per (query head, row). Softmax over chunks of 256 positions counted from position 0: m = largest score,
// e = exp(s - m), l = sum of e in 16 lanes (position mod 16), o = sum of e * V, positions ascending; chunks are weighed by
// exp(m - M), M the largest score of all, which a first pass over the keys finds where there is more than one chunk.
kernel WORK_GROUP(64) void attention(VALUE(q), global const uchar *k_region, global const uchar *v_region, global const int *positions,
                                     global const int *row_seq, global const int *table, uint table_width, uint n_head, uint n_head_kv,
                                     uint head_dim, float scale, uint window, VALUE(y)) {
  local float q[MAX_HEAD], o[MAX_HEAD], scores[CHUNK], shared[64];
  const uint head = get_group_id(0), row = get_group_id(1), lane = get_local_id(0);
  const int live = row_seq[row] >= 0;
  const int end = live ? positions[row] + 1 : 0;  // positions first..end-1 are seen
  const int first = window != 0 && end > (int)window ? end - (int)window : 0;
  const int first_chunk = first / CHUNK, n_chunks = live ? (end - 1) / CHUNK - first_chunk + 1 : 0;
  global const int *blocks = table + (live ? (uint)row_seq[row] * table_width : 0);
  const ulong block_bytes = n_head_kv * HEAD_BYTES(head_dim), head_at = head / (n_head / n_head_kv) * HEAD_BYTES(head_dim);
  const ulong at = ((ulong)row * n_head + head) * head_dim;
  for (uint d = lane; d < head_dim; d += 64) {
    q[d] = VALUE_POINTER(q)[at + d];
    o[d] = 0.0f;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

#define SCORE(p, s)                                                                                                                  \
  {                                                                                                                                  \
    global const uchar *k = k_region + (ulong)blocks[(p) / KV_BLOCK] * block_bytes + head_at;                                        \
    const uint in_block = (uint)(p) % KV_BLOCK;                                                                                      \
    float dot = 0.0f;                                                                                                                \
    for (uint d = 0; d < head_dim; ++d)                                                                                              \
      dot = fma(q[d], load_element(k, k_index(in_block, d, head_dim), k_scale(in_block, d, head_dim), head_dim), dot);               \
    s = dot * scale;                                                                                                                 \
  }

  float largest = -INFINITY;
  if (n_chunks > 1)
    for (int p = first + (int)lane; p < end; p += 64) {
      float s;
      SCORE(p, s)
      largest = s > largest ? s : largest;
    }
  const float overall = largest_of_group(largest, shared);

  float total = 0.0f;
  for (int c = 0; c < n_chunks; ++c) {
    const int start = (first_chunk + c) * CHUNK;
    const int from = max(first, start), to = min(end, start + CHUNK);
    float mine = -INFINITY;
    for (int p = from + (int)lane; p < to; p += 64) {
      float s;
      SCORE(p, s)
      scores[p - from] = s;
      mine = s > mine ? s : mine;
    }
    const float m = largest_of_group(mine, shared);
    for (int p = from + (int)lane; p < to; p += 64) scores[p - from] = exp_f32(scores[p - from] - m);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < 16) {
      float sum = 0.0f;
      for (int p = from + (((int)lane - from) & 15); p < to; p += 16) sum = sum + scores[p - from];
      shared[lane] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float weight = n_chunks > 1 ? exp_f32(m - overall) : 1.0f;
    total = fma(sum_of_16(shared), weight, total);
    for (uint d = lane; d < head_dim; d += 64) {
      float sum = 0.0f;
      for (int p = from; p < to; ++p) {
        global const uchar *v = v_region + (ulong)blocks[p / KV_BLOCK] * block_bytes + head_at;
        const uint in_block = (uint)p % KV_BLOCK;
        sum = fma(scores[p - from], load_element(v, v_index(in_block, d, head_dim), v_scale(in_block, d, head_dim), head_dim), sum);
      }
      o[d] = fma(sum, weight, o[d]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (live)
    for (uint d = lane; d < head_dim; d += 64) VALUE_POINTER(y)[at + d] = o[d] / total;
}
