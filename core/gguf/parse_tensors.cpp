// Tensor records of a GGUF file, and the check that their data lies where it must.
#include <string>
#include <vector>

#include "base/checked_math.hpp"
#include "base/utf8.hpp"
#include "gguf/describe.hpp"
#include "gguf/parse.hpp"

namespace minfer::gguf {
namespace {

constexpr uint64_t kSmallestRecord = 8 + 1 + 4 + 8 + 4 + 8;  // length and one byte of name, n_dims, one dim, type, offset
constexpr size_t kMaxNameBytes = 63;                         // the format's limit

struct Record {
  Tensor tensor;
  uint64_t n_bytes = 0;
  uint64_t offset = 0;  // from the start of the data section
};

// "'blk.0.attn_q.weight' (type Q4_K, id 12, dims [896, 896])"
std::string record_text(const Tensor& tensor) {
  return text("{} (type {}, id {}, dims {})", quote(tensor.name), type_name(tensor.type), static_cast<uint32_t>(tensor.type),
              dims_text({tensor.dims.data(), tensor.n_dims}));
}

Result<std::string_view> read_name(ByteReader& reader) {
  const uint64_t offset = reader.position();
  MINFER_ASSIGN(const std::string_view name, reader.string("the name"));
  if (name.empty()) return invalid("the name at offset {} is empty", offset);
  if (name.size() > kMaxNameBytes)
    return invalid("the name {} has {} bytes, the format allows {}", quote(name), name.size(), kMaxNameBytes);
  if (!is_valid_utf8(name)) return invalid("the name {} is not valid UTF-8", quote(name));
  return name;
}

// Everything behind the name.
Status read_rest(ByteReader& reader, Record& record) {
  Tensor& tensor = record.tensor;
  MINFER_ASSIGN(tensor.n_dims, reader.read<uint32_t>("n_dims"));
  if (tensor.n_dims < 1 || tensor.n_dims > kMaxDims) return invalid("n_dims is {}, expected 1 to {}", tensor.n_dims, kMaxDims);
  for (uint32_t i = 0; i < tensor.n_dims; ++i) {
    MINFER_ASSIGN(tensor.dims[i], reader.read<uint64_t>("a dim"));
  }
  MINFER_ASSIGN(const uint32_t type_id, reader.read<uint32_t>("the type"));
  const TypeInfo* type = find_type(type_id);
  if (!type) return unsupported("type id {} is unknown", type_id);
  if (type->retired())
    return unsupported("type {} (id {}) was removed from the format; quantise the model again with a current tool", type->name, type_id);
  tensor.type = static_cast<TensorType>(type_id);
  MINFER_ASSIGN(record.n_bytes, tensor_bytes(*type, {tensor.dims.data(), tensor.n_dims}));
  MINFER_ASSIGN(record.offset, reader.read<uint64_t>("the offset"));
  return {};
}

// `expected` is where the padded data of the tensors before it ends; `previous` is the last of them.
Status check_offset(const Record& record, const Record* previous, uint64_t expected, uint64_t alignment) {
  if (record.offset == expected) return {};
  const std::string where = record_text(record.tensor);
  if (record.offset % alignment != 0)
    return invalid("tensor {}: offset {} is not a multiple of the alignment {}", where, record.offset, alignment);
  if (!previous) return invalid("tensor {}: offset {}, expected 0 for the first tensor", where, record.offset);
  return invalid("tensor {}: offset {}, expected {}: tensor {} before it ends there", where, record.offset, expected,
                 record_text(previous->tensor));
}

}  // namespace

Result<TensorList> parse_tensors(ByteReader& reader, uint64_t count, uint64_t alignment, std::span<const std::byte> file) {
  if (count > reader.remaining() / kSmallestRecord)
    return invalid("header: tensor count at offset 8 is {}, but only {} bytes remain in the file", count, reader.remaining());
  std::vector<Record> records;  // grows with what is read: a count is no reason to allocate
  uint64_t data_size = 0;       // of the tensors so far, each padded
  for (uint64_t i = 0; i < count; ++i) {
    Record record;
    const auto name = read_name(reader);
    if (!name.ok()) return name.error().in(text("tensor {} of {}", i + 1, count));
    record.tensor.name = *name;
    if (const Status status = read_rest(reader, record); !status.ok()) return status.error().in(text("tensor {}", quote(*name)));
    MINFER_TRY(check_offset(record, records.empty() ? nullptr : &records.back(), data_size, alignment));
    const auto end = checked_add(data_size, record.n_bytes);
    const auto padded = end ? checked_align_up(*end, alignment) : std::nullopt;
    if (!padded || *end > file.size())
      return invalid("tensor {} needs {} bytes of data at offset {}, but the file has {} bytes: it is truncated or damaged",
                     record_text(record.tensor), record.n_bytes, record.offset, file.size());
    data_size = *padded;
    records.push_back(record);
  }

  const uint64_t data_start = align_up(reader.position(), alignment);
  TensorList tensors;
  for (Record& record : records) {
    // No overflow: both terms are at most the size of the file plus one alignment.
    const uint64_t begin = data_start + record.offset;
    if (begin + record.n_bytes > file.size())
      return invalid("the data of tensor {} ends at byte {}, but the file ends at {}: it is truncated or damaged",
                     record_text(record.tensor), begin + record.n_bytes, file.size());
    record.tensor.bytes = file.subspan(begin, record.n_bytes);
    if (!tensors.add(record.tensor)) return invalid("tensor {} appears twice", quote(record.tensor.name));
  }
  return tensors;
}

}  // namespace minfer::gguf
