// The POSIX side of FileMapping: open, fstat, mmap, madvise, and a handler for SIGBUS.
#include "base/file_mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
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
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Error system_error_at(const std::string& path, std::string_view what, int code) {
  const std::string reason = std::system_category().message(code);
  if (code == ENOENT) return not_found("'{}': {}: {}", path, what, reason);
  return io_error("'{}': {}: {}", path, what, reason);
}

// What the signal handler may look at: the mappings that are alive. A slot is taken while its end is not 0; begin is written first.
struct Range {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);
constinit std::array<Range, 256> mapped_ranges;

void add_range(std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  for (Range& range : mapped_ranges) {
    uintptr_t free = 0;
    if (!range.end.compare_exchange_strong(free, 1)) continue;  // 1: taken, and nothing lies below it
    range.begin.store(begin);
    range.end.store(begin + bytes.size());
    return;
  }
}

void remove_range(std::span<const std::byte> bytes) {
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  for (Range& range : mapped_ranges)
    if (range.end.load() == end) return range.end.store(0);
}

int64_t modified_ns(const struct stat& info) { return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec; }

size_t page_bytes = 4096;  // set before the handler is installed

// Only what POSIX allows in a handler, and mmap, which is a plain system call on Linux.
void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const uintptr_t page = address & ~static_cast<uintptr_t>(page_bytes - 1);
  for (const Range& range : mapped_ranges) {
    if (info->si_code != BUS_ADRERR) break;  // not a read of a page that is gone
    const uintptr_t end = range.end.load();
    if (address >= end || address < range.begin.load()) continue;
    const int saved = errno;
    const bool mapped =
        mmap(reinterpret_cast<void*>(page), page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    errno = saved;
    if (mapped) return;
  }
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  raise(signal);  // delivered when the handler returns
}

}  // namespace

void survive_shortened_files() {
  page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

Result<FileMapping> FileMapping::open(const std::filesystem::path& path) {
  const std::string name = path.string();
  // O_NONBLOCK: opening a named pipe must not wait for a writer. It means nothing for regular files.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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
  mapping.path_ = name;
  mapping.modified_ns_ = modified_ns(info);
  mapping.file_ = file.release();
  add_range(mapping.bytes_);
  return mapping;
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      path_(std::move(other.path_)),
      modified_ns_(other.modified_ns_),
      file_(std::exchange(other.file_, -1)) {}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(path_, other.path_);
  std::swap(modified_ns_, other.modified_ns_);
  std::swap(file_, other.file_);
  return *this;
}

FileMapping::~FileMapping() {
  if (bytes_.empty()) return;
  remove_range(bytes_);
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  close(file_);
}

Status FileMapping::check_unchanged() const {
  struct stat info = {};
  if (bytes_.empty()) return {};
  if (fstat(file_, &info) != 0) return system_error_at(path_, "cannot read its size", errno);
  if (static_cast<uint64_t>(info.st_size) != size())
    return io_error("'{}' had {} bytes when it was opened and has {} now: do not change a model file while it is in use", path_, size(),
                    info.st_size);
  if (modified_ns(info) != modified_ns_)
    return io_error("'{}' was written to after it was opened: do not change a model file while it is in use", path_);
  return {};
}

void FileMapping::map_cached_pages(uint64_t offset, uint64_t length, const std::atomic<bool>& stop) const {
#if defined(RWF_NOWAIT)
  // By reads: with madvise other threads would wait for this one whenever they allocate.
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  constexpr uint64_t kFaultAround = uint64_t{64} << 10;  // what Linux maps with one fault
  if (offset >= size()) return;
  const uint64_t end = offset + std::min(length, size() - offset);
  for (uint64_t piece = offset; piece < end && !stop.load(std::memory_order_relaxed); piece += std::min(kPiece, end - piece)) {
    char byte;
    const iovec first = {&byte, 1};
    if (preadv2(file_, &first, 1, static_cast<off_t>(piece), RWF_NOWAIT) != 1) return;  // the first page stands for its piece
    for (uint64_t i = 0; i < std::min(kPiece, end - piece); i += kFaultAround)
      static_cast<void>(*static_cast<const volatile std::byte*>(&bytes_[piece + i]));
  }
#else
  static_cast<void>(offset);
  static_cast<void>(length);
  static_cast<void>(stop);
#endif
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
