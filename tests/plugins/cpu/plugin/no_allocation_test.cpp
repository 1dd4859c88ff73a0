// A decode step allocates nothing: counted over the whole process and all threads, by functions that stand before those of the C library.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {
std::atomic<uint64_t> allocations{0};
}

// The names by which every library of the process, loaded plugins included, reaches the allocator; operator new ends in malloc. The
// __libc functions are glibc's own.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(p, size);
}
void* memalign(size_t alignment, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}
}

TEST_CASE("cpu/no_allocation: decode steps 3 to 64 allocate nothing on any thread") {
#ifndef NDEBUG
  skip("a debug build checks each reused graph against a rebuilt one");
#endif
  // The counter counts: here, on another thread, and in the plugins.
  uint64_t before = allocations.load();
  int* volatile kept = new int(1);
  delete kept;
  CHECK(allocations.load() == before + 1);
  std::thread([&] {
    before = allocations.load();
    void* volatile bytes = std::malloc(100);
    std::free(bytes);
    kept = new int(2);
    delete kept;
  }).join();
  CHECK(allocations.load() >= before + 2);

#ifdef MINFER_TEST_QWEN2
  const auto file = data_dir() / "tiny/qwen2_untied_Q4_K.gguf";
#else
  const auto file = data_dir() / "tiny/llama_Q8_0.gguf";
#endif
  for (const unsigned threads : {1u, 3u}) {
    const ModelOnCpu model(file, {threads, "auto", KvFormat::kF16});
    const auto session = model.session(256);
    std::vector<uint64_t> counts;
    int32_t token = 5;
    for (int step = 1; step <= 80; ++step) {
      const SeqChunk chunk{0, {&token, 1}, 1};
      const uint64_t at_start = allocations.load();
      const auto logits = session->forward({&chunk, 1});
      const uint64_t in_step = allocations.load() - at_start;
      if (!logits.ok()) FAIL(logits.error().text);
      token = (token * 7 + step) % static_cast<int32_t>(model->info().n_vocab);
      counts.push_back(in_step);
    }
    CHECK(counts[0] > 10);  // the first step builds the graph
    uint64_t later = 0;
    for (size_t step = 3; step <= 80; ++step) later += counts[step - 1];  // a second KV block begins at step 65
    INFO("threads " << threads);
    CHECK(later == 0);
    CHECK(session->stats().reuses == 79);
  }
}
