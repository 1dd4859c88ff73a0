#include "base/file_mapping.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support/support.hpp"

using namespace minfer;
using minfer::test::TempDir;
using minfer::test::write_file;

namespace {
std::string text_of(const FileMapping& mapping) { return {reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size()}; }
// The pages of the mapping that are present in the page tables of this process are not visible through mincore (it shows the
// page cache), so count them in /proc/self/smaps: resident KiB of the mapping that starts at `address`.
long resident_kib(const void* address) {
  char head[32];
  std::snprintf(head, sizeof head, "%lx-", reinterpret_cast<unsigned long>(address));
  bool inside = false;
  for (const std::string& line : test::read_lines("/proc/self/smaps")) {
    if (line.rfind(head, 0) == 0)
      inside = true;
    else if (inside && line.rfind("Rss:", 0) == 0)
      return std::stol(line.substr(4));
  }
  return -1;
}
// Whether a read that must not wait finds what was just written.
bool tells_what_is_cached(const std::filesystem::path& path) {
#if defined(RWF_NOWAIT)
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char byte;
  const iovec first = {&byte, 1};
  const bool tells = preadv2(file, &first, 1, 0, RWF_NOWAIT) == 1;
  close(file);
  return tells;
#else
  static_cast<void>(path);
  return false;
#endif
}

}  // namespace

TEST_CASE("base/file_mapping: serves the bytes of a file and keeps their address when moved", "[base]") {
  TempDir dir;
  write_file(dir.path() / "a", "hello");
  auto opened = FileMapping::open(dir.path() / "a");
  REQUIRE(opened.ok());
  const std::byte* address = opened->bytes().data();
  FileMapping moved = std::move(*opened);
  CHECK(text_of(moved) == "hello");
  CHECK(moved.size() == 5);
  CHECK(moved.bytes().data() == address);
  CHECK(opened->size() == 0);
  FileMapping assigned;
  assigned = std::move(moved);
  CHECK(assigned.bytes().data() == address);
  CHECK(text_of(assigned) == "hello");
}

TEST_CASE("base/file_mapping: refuses missing files and directories and pipes and empty files with path and reason", "[base]") {
  TempDir dir;
  write_file(dir.path() / "empty", "");
  REQUIRE(mkfifo((dir.path() / "pipe").c_str(), 0600) == 0);
  const auto refusal = [&](const char* name) {
    const auto opened = FileMapping::open(dir.path() / name);
    REQUIRE_FALSE(opened.ok());
    CHECK_THAT(opened.error().text, Catch::Contains((dir.path() / name).string()));
    return opened.error();
  };
  CHECK(refusal("nothing").code == ErrorCode::kNotFound);
  CHECK_THAT(refusal("nothing").text, Catch::Contains("No such file"));
  CHECK_THAT(refusal(".").text, Catch::Contains("is a directory"));
  CHECK_THAT(refusal("pipe").text, Catch::Contains("not a regular file"));
  CHECK_THAT(refusal("empty").text, Catch::Contains("is empty (0 bytes)"));
  CHECK_THAT(refusal("empty/below").text, Catch::Contains("Not a directory"));
}

TEST_CASE("base/file_mapping: dropped pages leave memory and read back the same", "[base]") {
  TempDir dir;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::string bytes(64 * page + 100, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i / page + i % 7);
  write_file(dir.path() / "a", bytes);
  auto mapping = FileMapping::open(dir.path() / "a");
  REQUIRE(mapping.ok());
  REQUIRE(text_of(*mapping) == bytes);  // touches every page
  const long before = resident_kib(mapping->bytes().data());
  REQUIRE(before == static_cast<long>(65 * page / 1024));

  mapping->drop_pages(1, page);  // no whole page inside
  CHECK(resident_kib(mapping->bytes().data()) == before);
  mapping->drop_pages(page - 1, 2 * page + 2);  // pages 1 and 2
  CHECK(resident_kib(mapping->bytes().data()) == before - static_cast<long>(2 * page / 1024));
  mapping->drop_pages(bytes.size(), 10);
  mapping->drop_pages(UINT64_MAX, UINT64_MAX);
  CHECK(resident_kib(mapping->bytes().data()) == before - static_cast<long>(2 * page / 1024));
  mapping->drop_pages(0, UINT64_MAX);  // cut at the end, the last partial page included
  CHECK(resident_kib(mapping->bytes().data()) == 0);
  CHECK(text_of(*mapping) == bytes);
}

TEST_CASE("base/file_mapping: pages that are in memory are mapped ahead until told to stop") {
  TempDir dir;
  const size_t size = size_t{16} << 20;
  write_file(dir.path() / "a", std::string(size, 'x'));
  auto mapping = FileMapping::open(dir.path() / "a");
  REQUIRE(mapping.ok());
  const std::byte* address = mapping->bytes().data();
  std::atomic<bool> stop{true};
  mapping->map_cached_pages(0, size, stop);
  REQUIRE(resident_kib(address) == 0);
  stop = false;
  mapping->map_cached_pages(size, 1, stop);
  REQUIRE(resident_kib(address) == 0);
  mapping->map_cached_pages(size / 2, UINT64_MAX, stop);  // cut at the end
  const long half = resident_kib(address);
  if (half == 0 && !tells_what_is_cached(dir.path() / "a")) test::skip("this file system cannot tell whether a page is in memory");
  const long least = static_cast<long>(size / 65536 * 4);  // a page of every 64 KiB, and what the system maps around it
  CHECK(half >= least / 2);
  CHECK(half <= static_cast<long>(size / 2 / 1024) + 4096);  // the system maps up to 2 MiB around what is read
  mapping->map_cached_pages(0, size, stop);
  CHECK(resident_kib(address) >= least);
}

TEST_CASE("base/file_mapping: a file that was shortened reads as zeros where it is gone and says so when asked") {
  survive_shortened_files();
  TempDir dir;
  const auto path = dir.path() / "shrinks";
  write_file(path, std::string(100000, 'x'));
  auto opened = FileMapping::open(path);
  REQUIRE(opened.ok());
  const FileMapping mapping = std::move(*opened);
  CHECK(mapping.check_unchanged().ok());
  std::filesystem::resize_file(path, 10);
  size_t x = 0, zero = 0;
  for (const std::byte b : mapping.bytes()) x += b == std::byte{'x'}, zero += b == std::byte{0};
  CHECK(x == 10);
  CHECK(zero == 100000 - 10);
  const Status status = mapping.check_unchanged();
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().text, Catch::Contains("shrinks' had 100000 bytes when it was opened and has 10 now"));
}

TEST_CASE("base/file_mapping: a file that was written to in place is noticed though it keeps its length") {
  const TempDir dir;
  const auto path = dir.path() / "rewritten";
  std::ofstream(path) << "before";
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  auto opened = FileMapping::open(path);
  REQUIRE(opened.ok());
  FileMapping mapping;
  mapping = std::move(*opened);
  CHECK(mapping.check_unchanged().ok());
  std::fstream(path, std::ios::in | std::ios::out) << "behind";
  const Status status = mapping.check_unchanged();
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().text, Catch::Contains("rewritten' was written to after it was opened"));
}

TEST_CASE("base/file_mapping: a bus error of another origin still ends the process") {
  CHECK(WTERMSIG([] {
          int status = 0;
          const pid_t child = fork();
          if (child == 0) {
            survive_shortened_files();
            raise(SIGBUS);
            _exit(0);
          }
          waitpid(child, &status, 0);
          return status;
        }()) == SIGBUS);
}
