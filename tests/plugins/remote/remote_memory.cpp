#include "remote_memory.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace minfer::remote {
namespace {
constexpr uint64_t kPage = 4096;
constexpr uint32_t kNan = 0x7fa07fa0;  // a signalling NaN as f32, two NaNs as f16
}  // namespace

RemoteMemory::RemoteMemory(uint64_t size_bytes) : size_bytes_(size_bytes), mapped_bytes_((size_bytes / kPage + 1) * kPage) {
  void* base = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) sdk::fail(MI_OUT_OF_MEMORY, "no memory for a buffer of ", size_bytes, " bytes");
  data_ = static_cast<std::byte*>(base);
  const Opened opened(*this);
  for (uint64_t at = 0; at < mapped_bytes_; at += sizeof kNan) std::memcpy(data_ + at, &kNan, sizeof kNan);
}

RemoteMemory::~RemoteMemory() { munmap(data_, mapped_bytes_); }

void RemoteMemory::protect(bool open) {
  if (mprotect(data_, mapped_bytes_, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0) return;
  std::perror("remote: mprotect");
  std::abort();  // a test could not be trusted any more
}

void RemoteMemory::check(uint64_t offset, uint64_t size_bytes) const {
  if (offset > size_bytes_ || size_bytes > size_bytes_ - offset)
    sdk::fail(MI_INVALID_ARGUMENT, "bytes ", offset, " + ", size_bytes, " do not lie in a buffer of ", size_bytes_);
}

void RemoteMemory::write(uint64_t offset, const void* src, uint64_t size_bytes) {
  check(offset, size_bytes);
  const Opened opened(*this);
  std::memcpy(data_ + offset, src, size_bytes);
}

void RemoteMemory::read(uint64_t offset, void* dst, uint64_t size_bytes) {
  check(offset, size_bytes);
  const Opened opened(*this);
  std::memcpy(dst, data_ + offset, size_bytes);
}

}  // namespace minfer::remote
