// A whole file mapped read-only into memory, unmapped at the end of scope.
// Knows nothing of what the file holds. The file must not be shortened while it is mapped: reading a page that is gone
// ends the process (SIGBUS), and no check can prevent that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/error.hpp"

namespace minfer {

// Move-only; a moved-from or default mapping is empty. The bytes stay at one address for the life of the mapping, moves
// included. Const members may be called from any thread.
class FileMapping {
 public:
  // Refuses, naming the path and the reason: a missing or unreadable file, a directory, anything else that is not a regular
  // file, and a file of 0 bytes.
  static Result<FileMapping> open(const std::filesystem::path& path);

  FileMapping() = default;
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&& other) noexcept;
  ~FileMapping();

  std::span<const std::byte> bytes() const { return bytes_; }
  uint64_t size() const { return bytes_.size(); }

  // Tells the system that the pages wholly inside [offset, offset + length) are not needed for now. They count no longer
  // against the resident memory of the process; a later read brings them back from the file. A range past the end is cut.
  void drop_pages(uint64_t offset, uint64_t length) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace minfer
