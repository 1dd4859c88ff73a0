// A model on disk: one GGUF file, or all parts of a split one, mapped, checked, and seen as one.
// Knows containers and tensors, no architecture. Errors name the file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file_mapping.hpp"
#include "gguf/metadata.hpp"
#include "gguf/tensor.hpp"

namespace minfer::gguf {

// Move-only. Owns the mappings that all names, values and tensor bytes point into; they stay valid, and where they are, when
// the object is moved. Const members may be called from any thread.
class ModelFile {
 public:
  const Metadata& metadata() const { return metadata_; }
  const TensorList& tensors() const { return tensors_; }  // find() by name; part by part in file order

  size_t part_count() const { return parts_.size(); }
  uint64_t total_bytes() const;

  // Forgets the pages of `bytes`, a tensor's data or a part of it, once it was copied elsewhere. See FileMapping.
  void drop_pages(std::span<const std::byte> bytes) const;

  // Maps the pages of `bytes`, a tensor's data, that are in memory, until `stop`. See FileMapping.
  void map_cached_pages(std::span<const std::byte> bytes, const std::atomic<bool>& stop) const;

  // An error when a part is no longer as long as it was when it was opened: what was read since may be wrong. See FileMapping.
  Status check_unchanged() const;

 private:
  // Where bytes of a tensor lie: the part, or null, and the offset in it.
  std::pair<const FileMapping*, uint64_t> place_of(std::span<const std::byte> bytes) const;

  friend Result<ModelFile> open_model_file(const std::filesystem::path& path);
  static Result<ModelFile> open_parts(const std::filesystem::path& path);

  std::vector<FileMapping> parts_;
  Metadata metadata_;
  TensorList tensors_;
};

// Of a split model, `path` is the first part; the others lie beside it. For a directory the error lists the models in it as
// commands.
Result<ModelFile> open_model_file(const std::filesystem::path& path);

}  // namespace minfer::gguf
