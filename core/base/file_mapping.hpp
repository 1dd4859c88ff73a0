// A whole file mapped read-only into memory, unmapped at the end of scope.
// Knows nothing of what the file holds.
// A file that is shortened while it is mapped takes pages away, and reading one of them ends the process (SIGBUS). Two parts turn
// that into an error: survive_shortened_files() lets such a read yield zeros, and whoever has read the mapping asks
// check_unchanged() before what was read is used for anything. A library alone cannot do the first: signals belong to the program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

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

  // Maps the pages of [offset, offset + length) that the system has in memory, so that reading them later costs no fault. Ends where
  // it says that it does not have them (asked once per MiB), and within a MiB after `stop` becomes true. Does nothing where the system
  // cannot tell. A range past the end is cut.
  void map_cached_pages(uint64_t offset, uint64_t length, const std::atomic<bool>& stop) const;

  // An error when the file is no longer as long as it was when it was opened, or was written to since (its time of modification).
  Status check_unchanged() const;

 private:
  std::span<const std::byte> bytes_;
  std::string path_;
  int64_t modified_ns_ = 0;
  int file_ = -1;  // kept open for check_unchanged
};

// For the main function of a program: from now on a page that a mapped file has lost reads as zeros. Covers the first 256 mappings
// that are alive at a time; a SIGBUS of any other origin ends the process as before.
void survive_shortened_files();

}  // namespace minfer
