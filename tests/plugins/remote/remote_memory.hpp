// Memory that the host cannot touch: its pages are closed (PROT_NONE) except while the device itself works on them, and a fresh
// buffer holds signalling NaN, so that whatever reads bytes nobody has written shows in the results.
#pragma once

#include "minfer/plugin/backend.hpp"

namespace minfer::remote {

// The device's own side of a buffer. The host knows it by a number only (remote_backend.cpp).
class RemoteMemory final : public sdk::Buffer {
 public:
  explicit RemoteMemory(uint64_t size_bytes);  // throws sdk::Error
  ~RemoteMemory() override;
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  // For the kernels of this device: valid while an Opened of it lives.
  void* host_ptr() noexcept override { return data_; }
  // Both open the pages for themselves.
  void write(uint64_t offset, const void* src, uint64_t size_bytes) override;
  void read(uint64_t offset, void* dst, uint64_t size_bytes) override;
  // Throws where the range does not lie inside.
  void check(uint64_t offset, uint64_t size_bytes) const;

  // Opens the pages for the life of the object. One at a time per buffer.
  class Opened {
   public:
    explicit Opened(RemoteMemory& memory) : memory_(memory) { memory_.protect(true); }
    ~Opened() { memory_.protect(false); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    RemoteMemory& memory_;
  };

 private:
  void protect(bool open);

  std::byte* data_ = nullptr;
  uint64_t size_bytes_;
  uint64_t mapped_bytes_;
};

}  // namespace minfer::remote
