// The order of look-ups is in resolve(); the rest says what was found instead.
#include "config/model_reference.hpp"

#include <algorithm>
#include <vector>

#include "yaml/document.hpp"

namespace minfer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxListed = 20;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// The .gguf files of a folder whose names begin with `prefix`, sorted. Empty for a folder that cannot be read.
std::vector<std::string> gguf_files(const fs::path& folder, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".gguf") && is_file(it->path())) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < names.size() && i < kMaxListed; ++i) list += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMaxListed) list += text(", and {} more", names.size() - kMaxListed);
  return list;
}

Result<fs::path> existing_file(const fs::path& path) {
  if (is_file(path)) return path;
  if (is_folder(path)) {
    const std::vector<std::string> names = gguf_files(path, "");
    if (names.empty()) return invalid("{} is a folder without .gguf files", path.string());
    return invalid("{} is a folder; name one of its files: {}", path.string(), joined(names));
  }
  std::error_code ignored;
  if (fs::exists(path, ignored)) return invalid("{} is not a regular file", path.string());
  return not_found("file {} does not exist", path.string());
}

Result<fs::path> resolve(const ModelReference& reference, const ModelSearch& search) {
  const std::string& name = reference.text;
  if (name.empty()) return invalid("not set; give -m MODEL or this key in the configuration");
  if (name.find('\0') != std::string::npos) return invalid("the name holds a zero byte");
  if (name.front() == '/') return existing_file(name);
  if (name.front() == '.') return existing_file((reference.base_dir / name).lexically_normal());
  if (name.front() == '~') {
    if (!name.starts_with("~/") || search.home.empty())
      return invalid("{}: '~' is only expanded as ~/ of the current user; write the full path", yaml::quote(name));
    return existing_file(search.home / name.substr(2));
  }

  const fs::path relative = (reference.base_dir / name).lexically_normal();
  if (is_file(relative)) return relative;
  if (name.find('/') != std::string::npos) return existing_file(relative);

  if (is_file(search.model_dir / name)) return search.model_dir / name;
  if (is_file(search.model_dir / (name + ".gguf"))) return search.model_dir / (name + ".gguf");
  const std::vector<std::string> names = gguf_files(search.model_dir, name);
  if (names.size() == 1) return search.model_dir / names.front();
  if (names.size() > 1) return invalid("{} is ambiguous; it may be: {}", yaml::quote(name), joined(names));
  const std::vector<std::string> all = gguf_files(search.model_dir, "");
  return not_found("{} is neither a file in {} nor a model in {} ({}); run scripts/fetch-model to get one", yaml::quote(name),
                   reference.base_dir.string(), search.model_dir.string(), all.empty() ? "no models there" : "there are: " + joined(all));
}

}  // namespace

Result<fs::path> resolve_model(const ModelReference& reference, const ModelSearch& search) {
  auto path = resolve(reference, search);
  if (path.ok()) return path;
  const Error error = path.error().in("model");
  return reference.where.empty() ? error : error.in(reference.where);
}

}  // namespace minfer
