// YAML text as a small tree that keeps places: what configuration files and plugin manifests are read from.
// A strict subset of YAML. Refused, each with its place: duplicate keys, anchors and aliases, merge keys, tags, a second
// document, keys that are not plain text, keys or list entries without a value, text that is not UTF-8, and anything beyond
// the limits below. Knows nothing of the keys that a file may hold: see yaml/reader.hpp.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace minfer::yaml {

inline constexpr size_t kMaxDepth = 32;     // mappings and lists inside one another
inline constexpr size_t kMaxNodes = 10000;  // keys, values, lists and mappings together
inline constexpr size_t kMaxFileBytes = 1 << 20;
inline constexpr size_t kMaxKeyBytes = 128;

// A value with its place. Self-contained: a copy outlives the document it came from.
struct Node {
  enum class Kind { kScalar, kSequence, kMapping };

  Kind kind = Kind::kScalar;
  std::string text;            // scalars: the text, never interpreted here
  bool quoted = false;         // scalars: written in quotes or as a block, so it is text and no number
  std::vector<Node> children;  // sequences: the items; mappings: the values, each with its key; in the order of the file

  std::string key;  // in a mapping: the key of this value
  int key_line = 0;
  int key_column = 0;

  std::string path;                         // "backends[0].name"; empty at the root
  std::shared_ptr<const std::string> file;  // the name that messages show; may be null
  int line = 0;                             // 1-based; 0: not from a file (file then names the option)
  int column = 0;                           // 1-based, in bytes

  // The child of that key, or null.
  const Node* find(std::string_view name) const;
  // "run.yaml:7:3"; the file alone when there is no line.
  std::string place() const;
  // "run.yaml:7:3: sampling.top_k: message" about this value.
  [[nodiscard]] Error error(std::string_view message) const;
  // The same about its key: points at the key instead of the value.
  [[nodiscard]] Error key_error(std::string_view message) const;
};

struct Document {
  Node root;
};

// `file_name` is shown in messages as it is. Never throws; failures are kInvalidArgument with the place in the text.
[[nodiscard]] Result<Document> parse_yaml(std::string_view text, std::string_view file_name);
// Reads at most kMaxFileBytes. kNotFound or kIo when the file cannot be read.
[[nodiscard]] Result<Document> parse_yaml_file(const std::filesystem::path& path);

// Text from a file as it may stand in a one-line message: in quotes, control bytes escaped, cut after 60 bytes.
std::string quote(std::string_view text);

}  // namespace minfer::yaml
