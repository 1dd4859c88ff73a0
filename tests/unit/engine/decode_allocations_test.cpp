// Counts every allocation of the process over decode steps. Alone in its program, since it replaces operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "session_fixture.hpp"

namespace {
std::atomic<uint64_t> allocations{0};

void* counted_or_null(std::size_t size) noexcept {
  ++allocations;
  return std::malloc(size ? size : 1);
}

void* counted(std::size_t size) {
  if (void* memory = counted_or_null(size)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
// All forms, so that none is left to a sanitizer's own pairs.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted_or_null(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted_or_null(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace minfer::test {
namespace {

TEST_CASE("engine/session: decode steps 3 to 64 allocate nothing over a KV block's edge and on two devices") {
  ReferenceOptions opaque;
  opaque.name = "opaque";
  opaque.host = false;
  ToyModel single, pair({}, {opaque, {}}, {1, std::nullopt});
  for (ToyModel* toy : {&single, &pair}) {
    const auto session = make_session(*toy);
    step(*session, toy_tokens(30), 1);
    const int32_t token = 7;
    const SeqChunk chunk{0, {&token, 1}, 1};
    uint64_t before = 0;
    bool ok = true;
    for (int i = 1; i <= 64; ++i) {
      if (i == 3) before = allocations;
      ok = session->forward({&chunk, 1}).ok() && ok;
    }
    const uint64_t during = allocations - before;
    REQUIRE(ok);
    CHECK(session->cursor(0) == 94);
#ifdef NDEBUG
    CHECK(during == 0);
#else
    CHECK(during > 0);  // the structural check builds every graph again
#endif
    // The counter counts: a new shape is a build.
    const uint64_t at = allocations;
    step(*session, toy_tokens(2), 1);
    CHECK(allocations > at + 100);
  }
}

}  // namespace
}  // namespace minfer::test
