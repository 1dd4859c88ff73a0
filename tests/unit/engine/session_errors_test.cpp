// What a session refuses, and that nothing is lost when a step fails.
#include "session_fixture.hpp"

namespace minfer::test {
namespace {

TEST_CASE("engine/session: refuses what cannot be a session") {
  ToyModel toy;
  const auto refusal = [&](CParams cparams, size_t capacity = 8) {
    auto session = Session::create(*toy.model, cparams, capacity);
    REQUIRE_FALSE(session.ok());
    return session.error().text;
  };
  CHECK_THAT(refusal(toy_cparams(0)), Catch::Contains("n_ctx 0 must be 1 to 1024"));
  CHECK_THAT(refusal(toy_cparams(1025)), Catch::Contains("n_ctx 1025 must be 1 to 1024"));
  CHECK_THAT(refusal(toy_cparams(64, 0)), Catch::Contains("max_seqs"));
  CHECK_THAT(refusal(toy_cparams(), 0), Catch::Contains("graph cache"));
}

TEST_CASE("engine/session: refuses a bad batch and changes nothing") {
  ToyModel toy;
  const auto session = make_session(toy, toy_cparams(100, 2));
  step(*session, toy_tokens(98), 0);
  const uint64_t runs = toy.device().counters.runs;
  CHECK_THAT(failure(*session, {1, 2, 3}, 1).text, Catch::Contains("position 100 is beyond n_ctx 100"));
  CHECK_THAT(failure(*session, {1}, 2).text, Catch::Contains("2 output rows wanted of 1 tokens"));
  CHECK_THAT(failure(*session, {50}, 1).text, Catch::Contains("token 50 is outside the vocabulary of 50"));
  CHECK_THAT(failure(*session, {-1}, 1).text, Catch::Contains("token -1 is outside"));
  CHECK_THAT(failure(*session, {}, 0).text, Catch::Contains("without tokens"));
  CHECK_THAT(failure(*session, {1}, 1, 2).text, Catch::Contains("sequence 2 does not exist, the session has 2"));
  const std::vector<int32_t> one{1};
  const SeqChunk twice[] = {{1, one, 1}, {1, one, 1}};
  auto result = session->forward(twice);
  REQUIRE_FALSE(result.ok());
  CHECK_THAT(result.error().text, Catch::Contains("sequence 1 stands twice"));
  CHECK_FALSE(session->forward({}).ok());
  CHECK(session->cursor(0) == 98);
  CHECK(session->cursor(1) == 0);
  CHECK(toy.device().counters.runs == runs);
  CHECK(session->stats().builds == 1);
  step(*session, {1, 2}, 1);  // exactly to n_ctx
  CHECK(session->cursor(0) == 100);
  CHECK_THAT(failure(*session, {3}, 1).text, Catch::Contains("position 100 is beyond n_ctx 100"));
}

TEST_CASE("engine/session: a sequence that finds no free KV block is refused and the others go on") {
  ToyModel toy;
  const auto session = make_session(toy, toy_cparams(128, 2));
  step(*session, toy_tokens(65), 0, 0);
  const Error error = failure(*session, {1}, 1, 1);
  CHECK(error.code == ErrorCode::kOutOfMemory);
  CHECK_THAT(error.text, Catch::Contains("sequence 1 needs 1 KV blocks of 64 positions, 0 are free (n_ctx 128)"));
  CHECK(session->cursor(1) == 0);
  CHECK(session->last_graph() == nullptr);
  step(*session, {1}, 1, 0);
  REQUIRE(session->rollback(0, 64).ok());
  step(*session, {1}, 1, 1);
  CHECK(session->cursor(1) == 1);
}

TEST_CASE("engine/session: after a cancelled or failed step the cursor stands and the next step works") {
  ToyModel toy;
  const auto tokens = toy_tokens(70);
  const auto undisturbed = make_session(toy);
  step(*undisturbed, slice(tokens, 0, 60), 1);
  const Rows expected = step(*undisturbed, slice(tokens, 60, 10), 3);

  const auto session = make_session(toy);
  step(*session, slice(tokens, 0, 60), 1);
  // Stopped after 0, 1, 2, ... nodes of the step.
  for (int after = 0; after < 12; ++after) {
    int left = after;
    const StopCheck stop = [&] { return left-- == 0; };
    const Error error = failure(*session, toy_tokens(10, 5), 3, 0, &stop);
    CHECK(error.code == ErrorCode::kCancelled);
    CHECK(session->cursor(0) == 60);
  }
  toy.device().fail_run = 0;
  const Error error = failure(*session, slice(tokens, 60, 10), 3);
  CHECK(error.code == ErrorCode::kDeviceLost);
  CHECK_THAT(error.text, Catch::Contains("injected failure of a run"));
  CHECK(session->cursor(0) == 60);
  CHECK(same_bits(step(*session, slice(tokens, 60, 10), 3), expected));
}

TEST_CASE("engine/session: a failed copy of a shared block leaves the block shared") {
  ToyModel toy;
  const auto tokens = toy_tokens(20);
  const auto alone = make_session(toy);
  step(*alone, tokens, 0);
  const Rows expected = step(*alone, {7}, 1);
  for (const int layers_done : {0, 1}) {
    const auto session = make_session(toy, toy_cparams(256, 2));
    step(*session, tokens, 0);
    REQUIRE(session->share_prefix(0, 1, 20).ok());
    toy.device().fail_kv_copy = layers_done;
    const Error error = failure(*session, {7}, 1, 1);
    CHECK_THAT(error.text, Catch::Contains("sequence 1: copy of a shared KV block: injected"));
    CHECK(session->cursor(1) == 20);
    CHECK(same_bits(step(*session, {7}, 1, 1), expected));
    CHECK(same_bits(step(*session, {7}, 1, 0), expected));
  }
}

TEST_CASE("engine/session: KV memory that cannot be had is an error with the size to lower") {
  ToyModel toy;
  const auto session = make_session(toy);
  toy.device().fail_alloc = 2;
  const Error error = failure(*session, {1}, 1);
  CHECK(error.code == ErrorCode::kOutOfMemory);
  CHECK_THAT(error.text, Catch::Contains("KV cache, layer 1 of 2, 256 positions on reference (a smaller context.n_ctx needs less)"));
  CHECK(session->stats().kv_bytes == 0);
  CHECK(step(*session, {1}, 1).size() == 1);
  CHECK(session->stats().kv_bytes == 65536);
}

TEST_CASE("engine/session: scratch growth re-maps the other graphs and gives the same bits") {
  ToyModel toy;
  const auto tokens = toy_tokens(60);
  const auto undisturbed = make_session(toy);
  step(*undisturbed, slice(tokens, 0, 50), 0);
  Rows expected;
  for (size_t t = 50; t < 54; ++t) expected = step(*undisturbed, slice(tokens, t, 1), 1);

  const auto session = make_session(toy);
  step(*session, slice(tokens, 0, 1), 1);  // the small graph first
  const uint64_t small = session->stats().scratch_bytes;
  step(*session, slice(tokens, 1, 49), 0);  // grows
  REQUIRE(session->stats().scratch_bytes > small);
  CHECK(session->stats().remaps == 0);
  Rows rows;
  for (size_t t = 50; t < 54; ++t) rows = step(*session, slice(tokens, t, 1), 1);
  CHECK(session->stats().remaps == 1);  // at its next hit, once
  CHECK(session->stats().reuses == 4);
  CHECK(session->stats().builds == 2);
  CHECK(same_bits(rows, expected));
}

TEST_CASE("engine/session: a re-map that fails is a loud error and is tried again") {
  ToyModel toy;
  const auto tokens = toy_tokens(60);
  const auto session = make_session(toy);
  step(*session, slice(tokens, 0, 1), 1);
  step(*session, slice(tokens, 1, 49), 0);
  const uint64_t builds = session->stats().builds;
  toy.device().fail_plan = 0;
  const Error error = failure(*session, {1}, 1);
  CHECK_THAT(error.text, Catch::Contains("re-map of a cached graph: plan on reference: injected failure of a plan"));
  CHECK(session->cursor(0) == 50);
  CHECK(session->stats().builds == builds);  // never a silent rebuild
  CHECK(step(*session, {1}, 1).size() == 1);
  CHECK(session->stats().builds == builds);
  CHECK(session->stats().remaps == 1);
}

TEST_CASE("engine/session: scratch that cannot grow is an error and the smaller graph works again") {
  ToyModel toy;
  const auto session = make_session(toy);
  step(*session, {1}, 1);
  toy.device().fail_alloc = 0;
  const Error error = failure(*session, toy_tokens(40), 0);
  CHECK(error.code == ErrorCode::kOutOfMemory);
  CHECK_THAT(error.text, Catch::Contains("scratch of 0 MiB on reference: injected"));
  CHECK(session->cursor(0) == 1);
  CHECK(step(*session, {1}, 1).size() == 1);
  CHECK(session->stats().remaps == 1);
}

}  // namespace
}  // namespace minfer::test
