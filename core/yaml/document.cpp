// Places, messages and reading of files; the grammar is in parse.cpp.
#include "yaml/document.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace minfer::yaml {

const Node* Node::find(std::string_view name) const {
  if (kind != Kind::kMapping) return nullptr;
  for (const Node& child : children)
    if (child.key == name) return &child;
  return nullptr;
}

namespace {

std::string place_text(const Node& node, int line, int column) {
  const std::string_view file = node.file ? std::string_view(*node.file) : std::string_view();
  return line > 0 ? text("{}:{}:{}", file, line, column) : std::string(file);
}

Error error_at(const Node& node, int line, int column, std::string_view message) {
  std::string where = place_text(node, line, column);
  if (!node.path.empty()) where += (where.empty() ? "" : ": ") + node.path;
  const Error error = invalid("{}", message);
  return where.empty() ? error : error.in(where);
}

}  // namespace

std::string Node::place() const { return place_text(*this, line, column); }
Error Node::error(std::string_view message) const { return error_at(*this, line, column, message); }
Error Node::key_error(std::string_view message) const {
  return key_line > 0 ? error_at(*this, key_line, key_column, message) : error(message);
}

Result<Document> parse_yaml_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return invalid("{}: is a folder, not a YAML file", name);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name.c_str(), "rb"), &std::fclose);
  if (!file) {
    const int reason = errno;
    if (reason == ENOENT) return not_found("{}: no such file", name);
    return io_error("{}: cannot be opened: {}", name, std::strerror(reason));
  }
  std::string bytes(kMaxFileBytes + 1, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  if (std::ferror(file.get())) return io_error("{}: cannot be read", name);
  return parse_yaml(bytes, name);
}

std::string quote(std::string_view text) {
  constexpr size_t kMaxShown = 60;
  bool cut = false;
  if (text.size() > kMaxShown) {
    size_t end = kMaxShown;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
    text = text.substr(0, end);
    cut = true;
  }
  std::string shown = "'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      shown += "\\n";
    else if (c == '\t')
      shown += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      shown += minfer::text("\\x{:02x}", byte);
    else
      shown += c;
  }
  shown += cut ? "...'" : "'";
  return shown;
}

}  // namespace minfer::yaml
