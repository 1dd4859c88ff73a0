// Random damage to a valid file: the reader either refuses it or hands out only what lies inside the file.
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "gguf/describe.hpp"
#include "gguf/reader.hpp"
#include "support/malformed.hpp"

using namespace minfer;
using namespace minfer::gguf;

namespace {

constexpr size_t kHeaderBytes = 6629;  // of base_ok.gguf: all but the tensor data

std::string damaged(const std::string& base, std::mt19937_64& random) {
  std::string bytes = base;
  const auto at = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  // Interesting values go where lengths and counts may be, single bits anywhere, and some files are cut.
  const uint64_t interesting[] = {0, 1, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, uint64_t{1} << 60, UINT64_MAX, UINT64_MAX - 7};
  for (size_t i = 0; i < 1 + at(3); ++i) {
    switch (at(4)) {
      case 0: bytes[at(kHeaderBytes)] = static_cast<char>(random()); break;
      case 1: bytes[at(kHeaderBytes)] ^= static_cast<char>(1 << at(8)); break;
      case 2: {
        const uint64_t value = interesting[at(std::size(interesting))];
        const size_t size = at(2) ? 8 : 4;
        bytes.replace(at(kHeaderBytes), size, reinterpret_cast<const char*>(&value), size);
        break;
      }
      case 3: {
        const size_t from = at(kHeaderBytes), length = 1 + at(64);
        if (at(2))
          bytes.erase(from, length);
        else
          bytes.insert(at(kHeaderBytes), base, from, length);
        break;
      }
    }
  }
  if (at(10) == 0) bytes.resize(at(2) ? at(bytes.size()) : bytes.size() - at(128));  // the last tensor has 128 bytes
  return bytes;
}

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

TEST_CASE("gguf/damage: random damage never yields a view outside the file", "[gguf]") {
  const std::string& base = test::malformed_file("base_ok.gguf").bytes;
  std::mt19937_64 random(20240817);
  size_t refused = 0, parsed_count = 0, outside = 0, empty_messages = 0, read = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes = damaged(base, random);
    // An allocation of the exact size, so that a sanitizer sees any step over the end.
    const std::vector<std::byte> exact(reinterpret_cast<const std::byte*>(bytes.data()),
                                       reinterpret_cast<const std::byte*>(bytes.data()) + bytes.size());
    const auto parsed = parse_file(exact);
    if (!parsed.ok()) {
      ++refused;
      empty_messages += parsed.error().text.empty();
      continue;
    }
    ++parsed_count;
    for (const Value& value : parsed->metadata.values()) {
      outside += !inside(value.bytes, exact);
      read += describe_value(value).size();
      if (value.type == ValueType::kArray && value.element_type == ValueType::kString)
        for (const std::string_view text : StringArray(value))
          read += text.size(), outside += !inside(std::as_bytes(std::span(text)), exact);
    }
    for (const Tensor& tensor : parsed->tensors) outside += !inside(tensor.bytes, exact);
  }
  CHECK(outside == 0);
  CHECK(empty_messages == 0);
  CHECK(read > 0);
  // Both ways were taken often enough to mean something.
  CHECK(refused > 500);
  CHECK(parsed_count > 100);
}
