// A GGUF file as plugins and the tokenizer want to see it.
#pragma once

#include "gguf/model_file.hpp"
#include "plugin/arch_proxy.hpp"
#include "text/vocabulary.hpp"

namespace minfer {

// Serves an architecture plugin. The file must outlive it.
class GgufMetadata final : public plugin::MetadataSource {
 public:
  explicit GgufMetadata(const gguf::ModelFile& file) : file_(file) {}
  Result<uint64_t> get_u64(std::string_view key) const override { return file_.metadata().u64(key); }
  Result<double> get_f64(std::string_view key) const override;
  Result<bool> get_bool(std::string_view key) const override { return file_.metadata().boolean(key); }
  Result<std::string_view> get_string(std::string_view key) const override { return file_.metadata().string(key); }
  Result<plugin::TensorEntry> get_tensor(std::string_view name) const override;

 private:
  const gguf::ModelFile& file_;
};

// The tokenizer.ggml.* keys. Views into the file.
Result<VocabularySource> read_vocabulary(const gguf::Metadata& metadata);

}  // namespace minfer
