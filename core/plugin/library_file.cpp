// ELF as in elf(5): the header, then the program headers, whose segments must lie in the file.
#include "plugin/library_file.hpp"

#ifdef __linux__
#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <vector>
#endif

namespace minfer::plugin {

#ifdef __linux__
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);

constexpr std::string_view kAgain = "install the plugin again";

FileRefusal damaged(const Error& error) { return {Stage::kFound, error, std::string(kAgain)}; }

bool read_at(std::ifstream& in, uint64_t offset, void* out, size_t size) {
  in.clear();
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(static_cast<char*>(out), static_cast<std::streamsize>(size));
  return in.gcount() == static_cast<std::streamsize>(size);
}

// Of the program that runs: what its plugins must be built for. Zero where it cannot be read.
const Header& own_header() {
  static const Header header = [] {
    Header own{};
    std::ifstream in("/proc/self/exe", std::ios::binary);
    if (!read_at(in, 0, &own, sizeof own)) own = {};
    return own;
  }();
  return header;
}

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86_64";
    case EM_386: return "x86";
    case EM_AARCH64: return "aarch64";
    case EM_ARM: return "arm";
    case EM_RISCV: return "riscv";
    case EM_PPC64: return "ppc64";
    default: return text("ELF machine {}", machine);
  }
}

}  // namespace

std::optional<FileRefusal> check_library_file(const std::filesystem::path& path) {
  std::error_code ec;
  const uint64_t file_bytes = std::filesystem::file_size(path, ec);
  std::ifstream in(path, std::ios::binary);
  if (ec || !in) return FileRefusal{Stage::kFound, io_error("{} cannot be read", path.string()), "check the rights of the file"};

  Header header{};
  const bool whole = read_at(in, 0, &header, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return damaged(invalid("{} is not a shared library", path.string()));
  if (!whole) return damaged(invalid("{} is cut off: it ends in its header", path.string()));
  const Header& own = own_header();
  if (std::memcmp(own.e_ident, ELFMAG, SELFMAG) == 0) {
    const bool same_format = header.e_ident[EI_CLASS] == own.e_ident[EI_CLASS] && header.e_ident[EI_DATA] == own.e_ident[EI_DATA];
    if (!same_format || header.e_machine != own.e_machine)
      return FileRefusal{Stage::kPlatform,
                         unsupported("the library was built for {}, this is {}",
                                     same_format ? machine_name(header.e_machine) : "a machine of another word size or byte order",
                                     machine_name(own.e_machine)),
                         "install the plugin for this platform"};
  }
  if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Segment))
    return damaged(invalid("{} is not a shared library", path.string()));

  const auto in_file = [&](uint64_t offset, uint64_t bytes) { return offset <= file_bytes && bytes <= file_bytes - offset; };
  std::vector<Segment> segments(header.e_phnum);
  const uint64_t table_bytes = segments.size() * sizeof(Segment);
  bool complete = in_file(header.e_phoff, table_bytes) && read_at(in, header.e_phoff, segments.data(), table_bytes);
  for (const Segment& segment : segments)
    if (segment.p_type == PT_LOAD) complete = complete && in_file(segment.p_offset, segment.p_filesz);
  if (!complete) return damaged(invalid("{} is cut off: it has {} bytes, its headers speak of more", path.string(), file_bytes));
  return std::nullopt;
}

#else

std::optional<FileRefusal> check_library_file(const std::filesystem::path&) { return std::nullopt; }

#endif

}  // namespace minfer::plugin
