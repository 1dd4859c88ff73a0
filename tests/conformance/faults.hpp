// The faults of faulty_backend.cpp, and the case that must name each.
#pragma once

#include <string_view>

enum class Fault {
  kNone,
  // weights
  kSwappedNibbles,
  kWrongSubScale,
  kSubnormalScales,
  kSourceReadLate,
  // products
  kTailOfK,
  kTailRow,
  kOneElement,
  kNoBias,
  kNotWritten,
  kStateKept,
  kBatchOrder,
  kNanSwallowed,
  kGateIsUp,
  // rows
  kNoEpsilon,
  kInputModified,
  kRopePairing,
  kFactorsIgnored,
  kInPlace,
  kWritesBeyond,
  // attention and KV
  kMaskOffByOne,
  kWindowOffByOne,
  kHeadMapping,
  kStaleLength,
  kHalfTruncated,
  kPaddingStored,
  kPositionClamped,
  kCopiesAtOnce,
  kRotateSign,
  kCheckWrites,
  // answers
  kSupportsAll,
};

struct FaultInfo {
  Fault fault;
  std::string_view name;    // option `fault`
  std::string_view filter;  // cases that are run
  std::string_view caught;  // a case among them that must fail, and what it must say
  std::string_view says;
};

inline constexpr FaultInfo kFaults[] = {
    {Fault::kNone, "none", "", "", ""},
    {Fault::kSwappedNibbles, "swapped_nibbles", "matmul/q4_0/", "matmul/q4_0/k64_n31_t2/uniform", "NMSE"},
    {Fault::kWrongSubScale, "wrong_sub_scale", "matmul/q6_k/", "matmul/q6_k/k256_n33_t1/gauss", "NMSE"},
    {Fault::kSubnormalScales, "subnormal_scales", "matmul/q8_0/", "matmul/q8_0/k96_n37_t6/tiny", "NMSE"},
    {Fault::kSourceReadLate, "source_read_late", "matmul/q4_1/k64", "matmul/q4_1/k64_n31_t2/uniform", "must be finite"},
    {Fault::kTailOfK, "tail_of_k", "matmul/f16/k96", "matmul/f16/k96_n127_t3/gauss/bias", "NMSE"},
    {Fault::kTailRow, "tail_row", "matmul/q5_1/*n129", "matmul/q5_1/k896_n129_t1/gauss/bias", "element 128"},
    {Fault::kOneElement, "one_element", "matmul/q4_k/", "matmul/q4_k/k256_n128_t8/gauss", "element 100"},
    {Fault::kNoBias, "no_bias", "matmul/q8_0/*bias", "matmul/q8_0/k896_n129_t1/gauss/bias", "NMSE"},
    {Fault::kNotWritten, "not_written", "matmul/f32/", "matmul/f32/k32_n48_t17/gauss/bias", "row 16, element 0: got nothing"},
    {Fault::kStateKept, "state_kept", "graph/replay", "graph/replay/unfused", "step 1"},
    {Fault::kBatchOrder, "batch_order", "graph/product_order/f32", "graph/product_order/f32", "must be the same bits"},
    {Fault::kNanSwallowed, "nan_swallowed", "not_finite/nan/matmul_q5_k", "not_finite/nan/matmul_q5_k", "want an error or no finite value"},
    {Fault::kGateIsUp, "gate_is_up", "graph/fused/f32", "graph/fused/f32_f32", "of the fused graph"},
    {Fault::kNoEpsilon, "no_epsilon", "rms_norm/", "rms_norm/w576_r5/tiny", "NMSE"},
    {Fault::kInputModified, "input_modified", "rms_norm/", "rms_norm/w64_r9/uniform", "was modified"},
    {Fault::kRopePairing, "rope_pairing", "rope/", "rope/interleaved/hd64_h14_r9", "NMSE"},
    {Fault::kFactorsIgnored, "factors_ignored", "rope/", "rope/split/hd64_h9_r17/factors", "NMSE"},
    {Fault::kInPlace, "in_place", "add/", "add/w33_r7/gauss/over_first", "one unit in the last place"},
    {Fault::kWritesBeyond, "writes_beyond", "silu/", "silu/w33_r7/gauss/over_first", "guard band was written"},
    {Fault::kMaskOffByOne, "mask_off_by_one", "attention/f32/h4x1", "attention/f32/h4x1_hd64/past32_r1", "NMSE"},
    {Fault::kWindowOffByOne, "window_off_by_one", "attention/f16/*window", "attention/f16/h4x2_hd64/past150_r1_window16", "NMSE"},
    {Fault::kHeadMapping, "head_mapping", "attention/f32/h14x2", "attention/f32/h14x2_hd64/past70_r1", "NMSE"},
    {Fault::kStaleLength, "stale_length", "graph/replay", "graph/replay/unfused", "step 2"},
    {Fault::kHalfTruncated, "half_truncated", "kv/f16/stored", "kv/f16/stored/gauss", "attention, row"},
    {Fault::kPaddingStored, "padding_stored", "kv/f32/padding", "kv/f32/padding", "changed by rows of padding"},
    {Fault::kPositionClamped, "position_clamped", "kv/f32/refused", "kv/f32/refused/store_position_beyond", "accepted"},
    {Fault::kCopiesAtOnce, "copies_at_once", "kv/f32/copy", "kv/f32/copy_rows", "attention, row"},
    {Fault::kRotateSign, "rotate_sign", "kv/f32/rotate", "kv/f32/rotate/split_-37", "NMSE"},
    {Fault::kCheckWrites, "check_writes", "kv/f16/rotate", "kv/f16/rotate/split_21", "only checked"},
    {Fault::kSupportsAll, "supports_all", "deny/", "deny/operation_31", "supports says yes"},
};
