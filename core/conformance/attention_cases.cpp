// KV_STORE and ATTENTION: what is stored is what is seen, for every format, grouping and number of positions.
#include "conformance/kv_fixture.hpp"
#include "conformance/suite.hpp"

namespace minfer::conformance {
namespace {

struct Form {
  KvFormat format;
  uint32_t n_head, n_head_kv, head_dim;
  uint32_t past;  // positions stored by runs before
  uint32_t rows;  // of the run that is judged
  uint32_t window = 0;
};

Status run_attention(Context& context, const Form& f) {
  KvFixture kv(context, {f.format, f.n_head_kv, f.head_dim, 0}, f.past + f.rows);
  MINFER_TRY(kv.make(f.n_head, f.window));
  if (f.past) MINFER_TRY(kv.store(consecutive_rows(0, 0, f.past)));
  return kv.store_and_attend(consecutive_rows(0, f.past, f.rows), f.n_head, f.window);
}

}  // namespace

void add_attention_cases(std::vector<Case>& cases) {
  const auto add = [&](const Form& f, bool full) {
    cases.push_back({text("attention/{}/h{}x{}_hd{}/past{}_r{}{}", kv_format_name(f.format), f.n_head, f.n_head_kv, f.head_dim, f.past,
                          f.rows, f.window ? text("_window{}", f.window) : ""),
                     full, [f](Context& context) { return run_attention(context, f); }});
  };
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
    for (const uint32_t past : {0, 30, 31, 32, 63, 64, 254, 255, 256}) add({format, 4, 1, 64, past, 1}, false);
    for (const auto& [n_head, n_head_kv, head_dim] : {std::tuple{1u, 1u, 64u},
                                                      {14u, 2u, 64u},
                                                      {7u, 1u, 64u},
                                                      {8u, 1u, 128u},
                                                      {4u, 4u, 128u},
                                                      {2u, 2u, 80u},
                                                      {8u, 2u, 96u},
                                                      {2u, 1u, 256u}}) {
      add({format, n_head, n_head_kv, head_dim, 70, 1}, false);
      add({format, n_head, n_head_kv, head_dim, 0, 17}, false);
      add({format, n_head, n_head_kv, head_dim, 250, 9}, false);
    }
    add({format, 14, 2, 64, 1640, 1}, false);
    add({format, 14, 2, 64, 0, 66}, false);
    for (const uint32_t window : {1, 16, 64, 100}) {
      add({format, 4, 2, 64, 150, 1, window}, false);
      add({format, 4, 2, 64, 90, 40, window}, false);
    }
    for (const uint32_t rows : {2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 64, 127, 128, 129})
      for (const uint32_t past : {0, 1, 60, 255}) add({format, 7, 1, 128, past, rows}, true);
    add({format, 28, 4, 128, 1640, 1}, true);
    add({format, 14, 2, 64, 0, 512}, true);
    add({format, 14, 2, 64, 1100, 512}, true);
  }
}

}  // namespace minfer::conformance
