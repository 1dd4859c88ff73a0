// The header of a GGUF file, and the order of its parts.
#include "gguf/reader.hpp"

#include <bit>

#include "base/utf8.hpp"
#include "gguf/byte_reader.hpp"
#include "gguf/parse.hpp"

namespace minfer::gguf {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMinAlignment = 8;  // the format asks for a multiple of 8
constexpr uint64_t kMaxAlignment = 1 << 20;

Status check_magic(ByteReader& reader) {
  MINFER_ASSIGN(const auto magic, reader.take(4, "header: the magic"));
  const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (found == "GGUF") return {};
  if (found == "FUGG") return unsupported("header: the magic is written in the other byte order; little-endian files are supported");
  return invalid("header: the file begins with {}, not 'GGUF': it is not a GGUF model", quote(found));
}

Status check_version(uint32_t version) {
  if (version == 2 || version == 3) return {};
  if (version == 0) return invalid("header: version 0 is not a GGUF version");
  if (version == 1)
    return unsupported("header: GGUF version 1 is not supported (2 and 3 are); convert the model again with a current tool");
  if ((version & 0xFFFF) == 0)
    return unsupported("header: version 0x{:08x} is byte-swapped: the file has big-endian byte order; little-endian files are supported",
                       version);
  return unsupported("header: GGUF version {} is newer than this program knows (2 and 3)", version);
}

Result<uint64_t> read_alignment(const Metadata& metadata) {
  MINFER_ASSIGN(const uint64_t alignment, or_default(metadata.u64("general.alignment"), kDefaultAlignment));
  if (!std::has_single_bit(alignment) || alignment < kMinAlignment || alignment > kMaxAlignment)
    return invalid("metadata key 'general.alignment' is {}, expected a power of two from {} to {}", alignment, kMinAlignment,
                   kMaxAlignment);
  return alignment;
}

}  // namespace

Result<FileContents> parse_file(std::span<const std::byte> file) {
  ByteReader reader(file);
  FileContents contents;
  MINFER_TRY(check_magic(reader));
  MINFER_ASSIGN(contents.version, reader.read<uint32_t>("header: the version"));
  MINFER_TRY(check_version(contents.version));
  MINFER_ASSIGN(const uint64_t tensor_count, reader.read<uint64_t>("header: the tensor count"));
  MINFER_ASSIGN(const uint64_t key_count, reader.read<uint64_t>("header: the key count"));
  MINFER_ASSIGN(contents.metadata, parse_metadata(reader, key_count));
  MINFER_ASSIGN(contents.alignment, read_alignment(contents.metadata));
  MINFER_ASSIGN(contents.tensors, parse_tensors(reader, tensor_count, contents.alignment, file));
  return contents;
}

}  // namespace minfer::gguf
