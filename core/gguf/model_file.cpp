// Opens model files and joins their parts.
#include "gguf/model_file.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include "base/out_of_memory.hpp"
#include "base/utf8.hpp"
#include "gguf/reader.hpp"
#include "gguf/split_files.hpp"

namespace minfer::gguf {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxListed = 20;

struct OpenedPart {
  FileMapping mapping;
  FileContents contents;
};

Result<OpenedPart> open_part(const fs::path& path) {
  OpenedPart part;
  MINFER_ASSIGN(part.mapping, FileMapping::open(path));
  auto contents = parse_file(part.mapping.bytes());
  if (!contents.ok()) return contents.error().in(path.string());
  part.contents = std::move(contents).value();
  return part;
}

// The word for a POSIX shell.
std::string shell_word(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./+:@%,-").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

// What can be opened in a directory: .gguf files, of split models the first part.
Error directory_error(const fs::path& directory) {
  std::vector<std::string> models;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    if (path.extension() != ".gguf" || !entry->is_regular_file(ignored)) continue;
    const auto split = parse_split_name(path.filename().string());
    if (!split || split->number == 1) models.push_back(path.string());
  }
  if (error) return io_error("'{}' is a directory and cannot be listed: {}", directory.string(), error.message());
  if (models.empty()) return invalid("'{}' is a directory without .gguf files; give the path of a model file", directory.string());
  std::sort(models.begin(), models.end());
  std::string message = text("'{}' is a directory; models in it:", directory.string());
  for (size_t i = 0; i < std::min(models.size(), kMaxListed); ++i) message += "\n  minfer-run -m " + shell_word(models[i]);
  if (models.size() > kMaxListed) message += text("\n  and {} more", models.size() - kMaxListed);
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

// How many parts the model has that `path` belongs to. Refuses a part that is not the first.
Result<uint32_t> parts_of_model(const fs::path& path, const Metadata& metadata) {
  MINFER_ASSIGN(const uint32_t count, split_count(metadata));
  const auto name = parse_split_name(path.filename().string());
  const uint32_t name_count = name ? name->count : 1;
  if (name && name->number != 1)
    return invalid("this is part {} of {}; open the first part, '{}'", name->number, name->count,
                   (path.parent_path() / split_file_name(name->prefix, 1, name->count)).string());
  if (count != name_count) {
    if (!name)
      return invalid("split.count is {}: this is one of {} parts, which must be named like '{}'", count, count,
                     split_file_name(path.stem().string(), 1, count));
    return invalid("its name says part 1 of {}, but split.count is {}", name_count, count);
  }
  return count;
}

}  // namespace

uint64_t ModelFile::total_bytes() const {
  uint64_t sum = 0;
  for (const FileMapping& part : parts_) sum += part.size();
  return sum;
}

std::pair<const FileMapping*, uint64_t> ModelFile::place_of(std::span<const std::byte> bytes) const {
  for (const FileMapping& part : parts_) {
    const std::byte* begin = part.bytes().data();
    if (std::less_equal<>()(begin, bytes.data()) && std::less<>()(bytes.data(), begin + part.size()))
      return {&part, static_cast<uint64_t>(bytes.data() - begin)};
  }
  return {nullptr, 0};
}

void ModelFile::drop_pages(std::span<const std::byte> bytes) const {
  if (const auto [part, offset] = place_of(bytes); part) part->drop_pages(offset, bytes.size());
}

void ModelFile::map_cached_pages(std::span<const std::byte> bytes, const std::atomic<bool>& stop) const {
  if (const auto [part, offset] = place_of(bytes); part) part->map_cached_pages(offset, bytes.size(), stop);
}

Status ModelFile::check_unchanged() const {
  for (const FileMapping& part : parts_) MINFER_TRY(part.check_unchanged());
  return {};
}

Result<ModelFile> open_model_file(const fs::path& path) {
  return catch_out_of_memory([&] { return ModelFile::open_parts(path); });
}

Result<ModelFile> ModelFile::open_parts(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return directory_error(path);

  ModelFile model;
  MINFER_ASSIGN(OpenedPart first, open_part(path));
  const auto parts = parts_of_model(path, first.contents.metadata);
  if (!parts.ok()) return parts.error().in(path.string());
  const uint32_t count = *parts;
  const auto add = [&](OpenedPart part) -> Status {
    MINFER_TRY(merge_metadata(model.metadata_, part.contents.metadata));
    for (const Tensor& tensor : part.contents.tensors)
      if (!model.tensors_.add(tensor)) return invalid("tensor {} is also in a part before it", quote(tensor.name));
    model.parts_.push_back(std::move(part.mapping));
    return {};
  };
  if (count == 1) {
    MINFER_TRY(add(std::move(first)));
    return model;
  }

  const std::string prefix = parse_split_name(path.filename().string())->prefix;
  for (uint32_t number = 1; number <= count; ++number) {
    const fs::path part_path = path.parent_path() / split_file_name(prefix, number, count);
    OpenedPart part;
    if (number == 1) {
      part = std::move(first);  // NOLINT(bugprone-use-after-move): in the first round alone
    } else {
      auto opened = open_part(part_path);
      if (!opened.ok()) return opened.error().in(text("part {} of {} of '{}'", number, count, path.string()));
      part = std::move(opened).value();
    }
    Status status = check_part(part.contents.metadata, number, count);
    if (status.ok()) status = add(std::move(part));
    if (!status.ok()) return status.error().in(part_path.string());
  }
  if (const Status status = check_tensor_count(model.metadata_, model.tensors_.size()); !status.ok())
    return status.error().in(path.string());
  return model;
}

}  // namespace minfer::gguf
