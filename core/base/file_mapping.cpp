// The POSIX side of FileMapping: open, fstat, mmap, madvise.
#include "base/file_mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/checked_math.hpp"

namespace minfer {
namespace {

static_assert(sizeof(size_t) == sizeof(uint64_t), "files larger than 4 GiB are mapped whole: 64-bit systems only");

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Error system_error_at(const std::string& path, std::string_view what, int code) {
  const std::string reason = std::system_category().message(code);
  if (code == ENOENT) return not_found("'{}': {}: {}", path, what, reason);
  return io_error("'{}': {}: {}", path, what, reason);
}

}  // namespace

Result<FileMapping> FileMapping::open(const std::filesystem::path& path) {
  const std::string name = path.string();
  // O_NONBLOCK: opening a named pipe must not wait for a writer. It means nothing for regular files.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_error_at(name, "cannot open", errno);
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return system_error_at(name, "cannot read its size", errno);
  if (S_ISDIR(info.st_mode)) return invalid("'{}' is a directory, not a file", name);
  if (!S_ISREG(info.st_mode)) return invalid("'{}' is not a regular file (a pipe or device cannot be mapped)", name);
  if (info.st_size == 0) return invalid("'{}' is empty (0 bytes)", name);
  const auto size = static_cast<size_t>(info.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return system_error_at(name, "cannot map into memory", errno);
  FileMapping mapping;
  mapping.bytes_ = {static_cast<const std::byte*>(address), size};
  return mapping;
}

FileMapping::FileMapping(FileMapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

FileMapping::~FileMapping() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void FileMapping::drop_pages(uint64_t offset, uint64_t length) const {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (offset >= size()) return;
  uint64_t end = offset + std::min(length, size() - offset);
  if (end != size()) end -= end % page;  // the last page of the file may be partial and still goes as a whole
  const uint64_t begin = align_up(offset, page);
  if (begin >= end) return;
  // Failure leaves the pages resident, which is correct, only larger.
  (void)madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace minfer
