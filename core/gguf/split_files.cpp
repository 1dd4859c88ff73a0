// Names and metadata of split models.
#include "gguf/split_files.hpp"

#include <algorithm>
#include <charconv>

#include "base/utf8.hpp"

namespace minfer::gguf {
namespace {

constexpr size_t kDigits = 5;

std::optional<uint32_t> parse_digits(std::string_view digits) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

bool same_value(const Value& a, const Value& b) {
  return a.type == b.type && a.element_type == b.element_type && a.count == b.count && std::ranges::equal(a.bytes, b.bytes);
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view file_name) {
  // PREFIX - NNNNN -of- MMMMM .gguf
  constexpr std::string_view kSuffix = ".gguf", kOf = "-of-";
  constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits + kSuffix.size();
  if (file_name.size() <= kTail || !file_name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view tail = file_name.substr(file_name.size() - kTail);
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf) return std::nullopt;
  const auto number = parse_digits(tail.substr(1, kDigits));
  const auto count = parse_digits(tail.substr(1 + kDigits + kOf.size(), kDigits));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return SplitName{std::string(file_name.substr(0, file_name.size() - kTail)), *number, *count};
}

std::string split_file_name(std::string_view prefix, uint32_t number, uint32_t count) {
  return text("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

Result<uint32_t> split_count(const Metadata& metadata) {
  MINFER_ASSIGN(const uint32_t count, or_default(metadata.u32("split.count"), uint32_t{1}));
  return std::max(count, uint32_t{1});  // some tools write 0 into files that are not split
}

Status check_part(const Metadata& metadata, uint32_t number, uint32_t count) {
  MINFER_ASSIGN(const uint64_t found_count, metadata.u64("split.count"));
  MINFER_ASSIGN(const uint64_t found_no, metadata.u64("split.no"));
  if (found_count != count) return invalid("split.count is {}, but its name says {} parts", found_count, count);
  if (found_no != number - 1)
    return invalid("split.no is {} (counted from 0), but its name says part {}: the files of the model are mixed up", found_no, number);
  return {};
}

Status merge_metadata(Metadata& merged, const Metadata& part) {
  for (const Value& value : part.values()) {
    if (merged.add(value) || value.name == "split.no" || value.name == "general.alignment") continue;
    if (!same_value(*merged.find(value.name), value))
      return invalid("metadata key {} differs from that of the parts before it: the files belong to different models", quote(value.name));
  }
  return {};
}

Status check_tensor_count(const Metadata& metadata, uint64_t tensors_found) {
  MINFER_ASSIGN(const uint64_t expected, or_default(metadata.u64("split.tensors.count"), tensors_found));
  if (expected != tensors_found) return invalid("split.tensors.count is {}, but the parts hold {} tensors", expected, tensors_found);
  return {};
}

}  // namespace minfer::gguf
