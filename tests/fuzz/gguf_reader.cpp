// What any file does to the reader of model files and to the tokenizer made of it. Every value and every tensor byte is looked at, so
// that a sanitizer sees a view that leaves the file.
#include <cstdlib>
#include <vector>

#include "gguf/describe.hpp"
#include "gguf/reader.hpp"
#include "runtime/gguf_metadata.hpp"
#include "text/tokenizer.hpp"

using namespace minfer;

namespace {

volatile uint64_t sink;  // keeps the reads

void look_at(const gguf::FileContents& contents) {
  uint64_t sum = 0;
  for (const gguf::Value& value : contents.metadata.values()) {
    sum += gguf::describe_value(value).size();
    for (const std::byte b : value.bytes) sum += static_cast<uint8_t>(b);
  }
  for (const gguf::Tensor& tensor : contents.tensors)
    for (const std::byte b : tensor.bytes) sum += static_cast<uint8_t>(b);
  sink = sum;
}

void check_line(const Error& error) {
  for (const char c : error.text)
    if (static_cast<unsigned char>(c) < 0x20) std::abort();  // a message must be one printable line
  if (error.text.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::byte> file(reinterpret_cast<const std::byte*>(data), reinterpret_cast<const std::byte*>(data) + size);
  const auto contents = gguf::parse_file(file);
  if (!contents.ok()) {
    check_line(contents.error());
    return 0;
  }
  look_at(*contents);
  const auto vocabulary = read_vocabulary(contents->metadata);
  if (!vocabulary.ok()) {
    check_line(vocabulary.error());
    return 0;
  }
  const auto tokenizer = Tokenizer::create(*vocabulary);
  if (!tokenizer.ok()) {
    check_line(tokenizer.error());
    return 0;
  }
  const auto ids = tokenizer->encode("Hello, w\xC3\xB6rld 123 \xFF<|im_end|>\n", {true, {}});
  if (!ids.ok() || !tokenizer->decode(*ids).ok()) std::abort();
  return 0;
}
