#include "runtime/gguf_metadata.hpp"

#include "text/pretokenizers.hpp"

namespace minfer {
namespace {

Result<std::optional<uint32_t>> optional_id(const gguf::Metadata& metadata, std::string_view key) {
  if (!metadata.contains(key)) return std::optional<uint32_t>();
  MINFER_ASSIGN(const uint32_t id, metadata.u32(key));
  return std::optional<uint32_t>(id);
}

}  // namespace

Result<double> GgufMetadata::get_f64(std::string_view key) const {
  // "Any number": files may hold a whole number where a real one is meant.
  const gguf::Value* value = file_.metadata().find(key);
  if (value && gguf::is_integer(value->type)) {
    MINFER_ASSIGN(const int64_t whole, file_.metadata().i64(key));
    return static_cast<double>(whole);
  }
  return file_.metadata().f64(key);
}

Result<plugin::TensorEntry> GgufMetadata::get_tensor(std::string_view name) const {
  const gguf::Tensor* tensor = file_.tensors().find(name);
  if (!tensor) return not_found("tensor '{}' is missing", name);
  plugin::TensorEntry entry;
  entry.dtype = static_cast<DType>(tensor->type);
  entry.shape.dims = tensor->dims;
  entry.shape.n_dims = tensor->n_dims;
  return entry;
}

Result<VocabularySource> read_vocabulary(const gguf::Metadata& metadata) {
  VocabularySource source;
  MINFER_ASSIGN(source.model, metadata.string("tokenizer.ggml.model"));
  MINFER_ASSIGN(source.pre, gguf::or_default(metadata.string("tokenizer.ggml.pre"), std::string_view()));
  MINFER_ASSIGN(const gguf::StringArray tokens, metadata.strings("tokenizer.ggml.tokens"));
  source.tokens.reserve(tokens.size());
  source.tokens.assign(tokens.begin(), tokens.end());
  if (metadata.contains("tokenizer.ggml.token_type")) {
    MINFER_ASSIGN(const gguf::IntArray types, metadata.ints("tokenizer.ggml.token_type"));
    source.token_types.reserve(types.size());
    for (size_t i = 0; i < types.size(); ++i) source.token_types.push_back(types[i]);
  }
  if (metadata.contains("tokenizer.ggml.merges")) {
    MINFER_ASSIGN(const gguf::StringArray merges, metadata.strings("tokenizer.ggml.merges"));
    source.merges.reserve(merges.size());
    source.merges.assign(merges.begin(), merges.end());
  }
  MINFER_ASSIGN(source.bos, optional_id(metadata, "tokenizer.ggml.bos_token_id"));
  MINFER_ASSIGN(source.eos, optional_id(metadata, "tokenizer.ggml.eos_token_id"));
  MINFER_ASSIGN(source.eot, optional_id(metadata, "tokenizer.ggml.eot_token_id"));
  MINFER_ASSIGN(source.eom, optional_id(metadata, "tokenizer.ggml.eom_token_id"));
  MINFER_ASSIGN(source.unk, optional_id(metadata, "tokenizer.ggml.unknown_token_id"));
  MINFER_ASSIGN(source.pad, optional_id(metadata, "tokenizer.ggml.padding_token_id"));
  const Pretokenizer* pretokenizer = find_pretokenizer(source.pre);
  const bool usual = pretokenizer && pretokenizer->add_bos && source.bos;
  MINFER_ASSIGN(source.add_bos, gguf::or_default(metadata.boolean("tokenizer.ggml.add_bos_token"), usual));
  return source;
}

}  // namespace minfer
