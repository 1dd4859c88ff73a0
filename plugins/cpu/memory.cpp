#include "memory.hpp"

#include <sys/mman.h>

#include <new>

namespace minfer::cpu {
namespace {
constexpr uint64_t kHugePage = 2u << 20;
}

PageMemory::PageMemory(uint64_t size_bytes) {
  if (size_bytes == 0) return;
  const bool huge = size_bytes >= kHugePage;
  const uint64_t reserve = huge ? size_bytes + kHugePage : size_bytes;
  if (reserve < size_bytes) throw std::bad_alloc();
  void* base = mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(base);
  size_ = size_bytes;
  if (!huge) return;
  // Start at a 2 MB boundary and give the slack before and behind back.
  const auto address = reinterpret_cast<uintptr_t>(base);
  const uintptr_t aligned = (address + kHugePage - 1) & ~(kHugePage - 1);
  const uint64_t before = aligned - address;
  if (before) munmap(base, before);
  const uint64_t pages = (size_bytes + 4095) & ~uint64_t{4095};
  const uint64_t behind = reserve - before - pages;
  if (behind >= 4096) munmap(reinterpret_cast<void*>(aligned + pages), behind & ~uint64_t{4095});
  data_ = reinterpret_cast<std::byte*>(aligned);
  madvise(data_, size_bytes, MADV_HUGEPAGE);  // advice: without it everything still works
}

PageMemory::~PageMemory() {
  if (data_) munmap(data_, size_);
}

}  // namespace minfer::cpu
