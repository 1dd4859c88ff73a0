#include "engine/memory/scratch.hpp"

namespace minfer {

Status Scratch::reserve(uint64_t bytes) {
  if (buffer_ ? bytes <= size_bytes_ : bytes == 0) return {};
  MINFER_TRY(device_->sync());
  buffer_.reset();
  size_bytes_ = 0;
  ++generation_;
  auto buffer = device_->alloc(bytes);
  if (!buffer.ok()) return buffer.error().in(text("scratch of {} MiB on {}", bytes >> 20, device_->info().name));
  buffer_ = std::move(*buffer);
  size_bytes_ = bytes;
  return {};
}

}  // namespace minfer
