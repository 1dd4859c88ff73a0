// What fails on the device comes back as one clear line, also when it happens after plan_run has returned, and the session goes on.
#include "offload_run.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

// Lets call number 1, 2, ... of one kind fail until a run meets no failure; returns how many did.
int fail_each_in_turn(const char* option, ErrorCode code, const std::string& text) {
  const ModelOnCpu alone(tiny_file());
  const std::vector<int32_t> ids = tokens(alone, 73);
  const auto session = alone.session(256);
  const std::vector<float> first = run_tokens(*session, {ids.begin(), ids.begin() + 20}, 1);
  const std::vector<float> second = run_tokens(*session, {ids[20]}, 1);
  for (int n = 1; n < 50; ++n) {
    const ModelOnBackends model(tiny_file(), {backend("remote", 1, {{option, std::to_string(n)}, {"refuse", "mul"}}), cpu()});
    const auto tried = model.session(256);
    int failures = 0;
    // Two steps of different shape; each may be tried again once.
    const auto step = [&](std::span<const int32_t> part, const std::vector<float>& expected) {
      const SeqChunk chunk{0, part, 1};
      const uint32_t cursor = tried->cursor(0);
      auto logits = tried->forward({&chunk, 1});
      if (!logits.ok()) {
        ++failures;
        CHECK(logits.error().code == code);
        CHECK_THAT(logits.error().text, Catch::Contains("device remote:0: ") && Catch::Contains(text));
        CHECK(tried->cursor(0) == cursor);
        logits = tried->forward({&chunk, 1});
      }
      REQUIRE(logits.ok());
      CHECK(same_bits({logits->values.begin(), logits->values.end()}, expected));
    };
    INFO(option << " " << n);
    step(std::span(ids).first(20), first);
    step(std::span(ids).subspan(20, 1), second);
    if (failures == 0) return n - 1;
    CHECK(failures == 1);
  }
  return 50;
}

}  // namespace

TEST_CASE("remote/errors: memory that the device does not have is one clear error and the next step works") {
  // Scratch, K and V of layer 0.
  CHECK(fail_each_in_turn("fail_alloc", ErrorCode::kOutOfMemory, "bytes, as option fail_alloc wants it") == 3);
}

TEST_CASE("remote/errors: a plan that cannot be made is one clear error and the next step works") {
  // Two splits of each graph: what stands before and behind the operation that the device lacks.
  CHECK(fail_each_in_turn("fail_plan", ErrorCode::kOutOfMemory, "no plan, as option fail_plan wants it") == 4);
}

TEST_CASE("remote/errors: a run that fails after plan_run has returned is one clear error and the next step works") {
  CHECK(fail_each_in_turn("fail_run", ErrorCode::kDeviceLost, "this run fails, as option fail_run wants it") == 4);
}

TEST_CASE("remote/errors: a step that stops on request leaves nothing under way") {
  const ModelOnCpu alone(tiny_file());
  const std::vector<int32_t> ids = tokens(alone, 73);
  const std::vector<float> expected = prompt_and_decode(*alone.session(256), ids);
  const ModelOnBackends model(tiny_file(), {backend("remote", 1), cpu()});
  int cancelled = 0;
  for (int after = 0; after < 12; ++after) {
    const auto session = model.session(256);
    int left = after;
    const StopCheck stop = [&] { return left-- == 0; };
    const SeqChunk chunk{0, std::span(ids).first(40), 1};
    const auto logits = session->forward({&chunk, 1}, &stop);
    if (logits.ok()) continue;
    ++cancelled;
    CHECK(logits.error().code == ErrorCode::kCancelled);
    CHECK(session->cursor(0) == 0);
    if (after % 2) CHECK(same_bits(prompt_and_decode(*session, ids), expected));  // the others are destroyed at once
  }
  CHECK(cancelled > 6);
}

TEST_CASE("remote/errors: a step that is refused after a block was copied leaves nothing under way") {
  const ModelOnCpu alone(tiny_file());
  const std::vector<int32_t> ids = tokens(alone, 73);
  const std::vector<float> expected = prompt_and_decode(*alone.session(256), ids);
  const ModelOnBackends model(tiny_file(), {backend("remote", 1), cpu()});
  CParams two;
  two.max_seqs = 2;
  for (const bool go_on : {false, true}) {  // or the session is destroyed at once
    const auto session = model.session(128, two);
    // Sequence 0's shared block is copied on the device, then sequence 1 finds no block.
    run_tokens(*session, {ids.begin(), ids.begin() + 20}, 1);
    REQUIRE(session->share_prefix(0, 1, 20).ok());
    const SeqChunk chunks[] = {{0, std::span(ids).subspan(20, 10), 1}, {1, std::span(ids).subspan(0, 60), 1}};
    const auto logits = session->forward(chunks);
    REQUIRE_FALSE(logits.ok());
    CHECK_THAT(logits.error().text, Catch::Contains("KV blocks"));
    CHECK(session->cursor(0) == 20);
    if (!go_on) continue;
    REQUIRE(session->rollback(1, 0).ok());
    REQUIRE(session->rollback(0, 0).ok());
    CHECK(same_bits(prompt_and_decode(*session, ids), expected));
  }
}
