// The progress line against a clock and a terminal of the test's own.
#include "programs/progress_line.hpp"

#include <catch2/catch.hpp>

using namespace minfer::programs;

namespace {

struct FakeTerminal {
  double now = 100;
  unsigned columns = 80;
  std::string written;

  ProgressTerminal terminal() {
    return {[this] { return now; }, [this] { return columns; }, [this](std::string_view bytes) { written += bytes; }};
  }
  // What has been written since the last call.
  std::string take() { return std::exchange(written, {}); }
};

}  // namespace

TEST_CASE("programs/progress: work that ends within half a second shows nothing") {
  FakeTerminal fake;
  ProgressLine line("Prefill", ProgressLine::Unit::kTokens, fake.terminal());
  line.update(0, 1000);
  fake.now += 0.4;
  line.update(900, 1000);
  line.tick();
  fake.now += 0.2;
  line.update(1000, 1000);
  fake.now += 5;
  line.tick();
  line.erase();
  CHECK(fake.take().empty());
}

TEST_CASE("programs/progress: a line tells what is done, the rate and the time left, and is erased at the end") {
  FakeTerminal fake;
  ProgressLine line("Prefill", ProgressLine::Unit::kTokens, fake.terminal());
  line.update(0, 4000);
  fake.now += 0.5;
  line.tick();
  CHECK(fake.take() == "\rPrefill: 0 of 4000 tokens\x1b[K");
  fake.now += 1.5;
  line.update(1000, 4000);
  CHECK(fake.take() == "\rPrefill: 1000 of 4000 tokens, 500.0 tok/s, 6 s left\x1b[K");
  fake.now += 5;
  line.tick();
  CHECK(fake.take() == "\rPrefill: 1000 of 4000 tokens, 500.0 tok/s, 1 s left\x1b[K");
  fake.now += 5;
  line.tick();  // slower than thought: no guess
  CHECK(fake.take() == "\rPrefill: 1000 of 4000 tokens, 500.0 tok/s\x1b[K");
  fake.now += 88;
  line.update(1500, 4000);
  CHECK(fake.take() == "\rPrefill: 1500 of 4000 tokens, 15.0 tok/s, 2:47 min left\x1b[K");
  line.update(4000, 4000);
  CHECK(fake.take() == "\r\x1b[K");
  line.erase();
  CHECK(fake.take().empty());
  line.update(0, 10);  // other work, with a beginning of its own
  fake.now += 0.4;
  line.update(5, 10);
  CHECK(fake.take().empty());
}

TEST_CASE("programs/progress: a line is rewritten ten times a second at most") {
  FakeTerminal fake;
  ProgressLine line("Loading", ProgressLine::Unit::kBytes, fake.terminal());
  line.update(0, 400'000'000);
  size_t n_drawn = 0;
  for (uint64_t i = 1; i <= 2000; ++i) {
    fake.now += 0.001;
    line.update(i * 100'000, 400'000'000);
    if (!fake.take().empty()) ++n_drawn;
  }
  CHECK(n_drawn >= 14);  // from 0.5 s to 2 s
  CHECK(n_drawn <= 16);
  line.tick();
  fake.now += 1;
  line.tick();
  CHECK(fake.take() == "\rLoading: 200 of 400 MB, 1 s left\x1b[K");
}

TEST_CASE("programs/progress: a narrow terminal gets a shorter line, also after it was made narrower") {
  FakeTerminal fake;
  ProgressLine line("Loading", ProgressLine::Unit::kBytes, fake.terminal());
  line.update(0, 9'000'000);
  fake.now += 2;
  fake.columns = 12;
  line.update(3'000'000, 9'000'000);
  CHECK(fake.take() == "\rLoading: 3 \x1b[K");  // 11 columns: the last one would wrap
  fake.now += 1;
  fake.columns = 5;
  line.tick();
  CHECK(fake.take() == "\rLoad\x1b[K");
  fake.now += 1;
  fake.columns = 0;  // not known
  line.tick();
  CHECK(fake.take() == "\rLoading: 3 of 9 MB, 2 s left\x1b[K");
}

TEST_CASE("programs/progress: other lines take the visible one away") {
  FakeTerminal fake;
  ProgressLine line("Loading", ProgressLine::Unit::kBytes, fake.terminal());
  erase_progress_line();
  CHECK(fake.take().empty());
  line.update(0, 10'000'000);
  fake.now += 2;
  line.update(1'000'000, 10'000'000);
  CHECK_FALSE(fake.take().empty());
  erase_progress_line();
  CHECK(fake.take() == "\r\x1b[K");
  fake.now += 0.01;
  line.tick();  // and it comes back
  CHECK(fake.take() == "\rLoading: 1 of 10 MB, 18 s left\x1b[K");
}
