// Rebuilds the malformed files from their differences and checks size and hash of each.
#include "support/malformed.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "support/support.hpp"

namespace minfer::test {
namespace {

using nlohmann::json;

// A part is [offset, length] of the base file, a literal "hex", or ["hex", times].
std::string rebuild(const json& parts, const std::string& base) {
  std::string bytes;
  for (const json& part : parts) {
    if (part.is_string()) {
      bytes += from_hex(part.get<std::string>());
    } else if (part[0].is_string()) {
      const std::string unit = from_hex(part[0].get<std::string>());
      for (int i = 0; i < part[1].get<int>(); ++i) bytes += unit;
    } else {
      bytes += base.substr(part[0].get<size_t>(), part[1].get<size_t>());
    }
  }
  return bytes;
}

uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

std::vector<MalformedFile> load() {
  const auto folder = data_dir() / "malformed";
  const std::string base = read_file(folder / "base_ok.gguf");
  std::vector<MalformedFile> files;
  for (const std::string& line : read_lines(folder / "files.jsonl")) {
    const json entry = json::parse(line);
    MalformedFile file{entry["file"], entry["group"], entry["expect"], entry["defect"], rebuild(entry["parts"], base)};
    if (file.bytes.size() != entry["size"] || fnv1a(file.bytes) != std::stoull(entry["fnv1a"].get<std::string>(), nullptr, 16))
      FAIL("tests/data/malformed: " << file.file << " does not rebuild to its size and hash");
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

const std::vector<MalformedFile>& malformed_files() {
  static const std::vector<MalformedFile> files = load();
  return files;
}

const MalformedFile& malformed_file(std::string_view name) {
  const auto& files = malformed_files();
  const auto found = std::find_if(files.begin(), files.end(), [&](const MalformedFile& f) { return f.file == name; });
  if (found == files.end()) FAIL("no malformed file is named " << name);
  return *found;
}

}  // namespace minfer::test
