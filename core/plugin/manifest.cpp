#include "plugin/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "yaml/document.hpp"
#include "yaml/reader.hpp"

namespace minfer::plugin {
namespace {

bool all_of(std::string_view text, std::string_view allowed) { return text.find_first_not_of(allowed) == std::string_view::npos; }

bool is_name(std::string_view text) { return !text.empty() && text.size() <= 32 && all_of(text, "abcdefghijklmnopqrstuvwxyz0123456789_"); }
bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 64 && all_of(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.");
}
bool is_hash(std::string_view text) { return text.size() == 64 && all_of(text, "0123456789abcdef"); }
// A file of the same folder.
bool is_library(std::string_view text) { return is_word(text) && text.front() != '.' && text.size() > 3 && text.ends_with(".so"); }

// "1.4"
bool read_abi(std::string_view text, uint32_t& major, uint32_t& minor) {
  const char* end = text.data() + text.size();
  const auto [dot, ec] = std::from_chars(text.data(), end, major);
  if (ec != std::errc() || dot == end || *dot != '.') return false;
  const auto [stop, ec2] = std::from_chars(dot + 1, end, minor);
  return ec2 == std::errc() && stop == end;
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, std::string_view file_name) {
  MINFER_ASSIGN(const yaml::Document document, yaml::parse_yaml(text, file_name));
  if (document.root.kind != yaml::Node::Kind::kMapping) return document.root.error("a plugin manifest must be a mapping of keys");
  yaml::Reader r(document.root);
  r.require({"kind", "name", "version", "library", "abi", "abi_hash", "platform", "priority"});
  Manifest m;
  m.kind = r.choice("kind", m.kind, {{"backend", Kind::kBackend}, {"arch", Kind::kArchitecture}});
  const auto checked = [&](std::string_view key, auto&& good, std::string_view expected) {
    std::string value = r.string(key, "");
    if (r.ok() && !good(value)) r.fail(r.node(key)->error(minfer::text("{} is not {}", yaml::quote(value), expected)));
    return value;
  };
  m.name = checked("name", is_name, "a plugin name: 1 to 32 of a-z, 0-9 and _");
  m.version = checked("version", is_word, "a version like 1.2.0");
  m.library = checked("library", is_library, "the name of a .so file in the manifest's folder");
  checked(
      "abi", [&](std::string_view v) { return read_abi(v, m.abi_major, m.abi_minor); }, "an ABI version like 1.0");
  m.abi_hash = checked("abi_hash", is_hash, "64 hexadecimal digits");
  m.platform = checked("platform", is_word, "a platform like linux-x86_64");
  m.priority = r.integer("priority", m.priority, {0, 1000});
  MINFER_TRY(r.finish());
  return m;
}

Result<Manifest> read_manifest(const std::filesystem::path& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) return io_error("{}: is not a regular file", path.string());
  std::ifstream in(path, std::ios::binary);
  std::string bytes(kMaxManifestBytes + 1, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (in.bad() || (!in && !in.eof())) return io_error("{}: cannot be read", path.string());
  bytes.resize(static_cast<size_t>(in.gcount()));
  if (bytes.size() > kMaxManifestBytes) return invalid("{}: is larger than {} bytes", path.string(), kMaxManifestBytes);
  return parse_manifest(bytes, path.filename().string());
}

}  // namespace minfer::plugin
