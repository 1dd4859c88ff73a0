// The scratch buffer of one session on one device: as large as the largest cached graph needs.
#pragma once

#include <memory>

#include "engine/device.hpp"

namespace minfer {

class Scratch {
 public:
  explicit Scratch(Device& device) : device_(&device) {}

  // Makes the buffer hold at least `bytes`. Growth moves it and bumps generation(): plans that were bound before are stale. When
  // memory runs out the old buffer is gone too; the next call tries again.
  Status reserve(uint64_t bytes);

  Buffer* buffer() const { return buffer_.get(); }
  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t generation() const { return generation_; }

 private:
  Device* device_;
  std::unique_ptr<Buffer> buffer_;
  uint64_t size_bytes_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace minfer
