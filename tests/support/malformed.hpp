// The malformed model files of tests/data/malformed: each one change away from a valid micro model (llama, one layer).
// Stored as differences to it; see tests/data/README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace minfer::test {

struct MalformedFile {
  std::string file;    // "dims_zero.gguf"
  std::string group;   // truncated, header, kv, hparams, tensors, data, tokenizer, valid
  std::string expect;  // of loading the model: reject, accept, or either
  std::string defect;
  std::string bytes;  // the whole file
};

// All files in the order of the list, base_ok.gguf first. Rebuilt once per process; a damaged set fails the test.
const std::vector<MalformedFile>& malformed_files();
// One of them by name.
const MalformedFile& malformed_file(std::string_view name);

}  // namespace minfer::test
