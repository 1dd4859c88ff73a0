// What any bytes do to the loading of a model: container, metadata, tensor table, tokenizer, chat template; then, through the plugins
// of this build, hyper-parameters, import of weights and two tokens of text. Input with a line PART between two files is a split
// model. Every value and every tensor byte is looked at, so that a sanitizer sees a view that leaves the file.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session.hpp"
#include "gguf/describe.hpp"
#include "gguf/reader.hpp"
#include "gguf/split_files.hpp"
#include "plugin/registry.hpp"
#include "runtime/generate.hpp"
#include "runtime/gguf_metadata.hpp"
#include "runtime/model.hpp"
#include "text/chat_template.hpp"

using namespace minfer;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPartMark = "\nPART\n";
constexpr size_t kMaxParts = 4;

volatile uint64_t sink;  // keeps the reads

// True when the step went well; a refusal must be one printable line.
bool check(const Status& status) {
  if (status.ok()) return true;
  const std::string& line = status.error().text;
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  if (line.empty() || std::any_of(line.begin(), line.end(), control)) {
    std::fprintf(stderr, "not one line: '%s'\n", line.c_str());
    std::abort();
  }
  return false;
}

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

void use_chat_template(const gguf::Metadata& metadata) {
  const auto source = metadata.string("tokenizer.chat_template");
  if (!source.ok()) return;
  const auto chat = ChatTemplate::parse(*source, "tokenizer.chat_template");
  if (!check(chat.status())) return;
  std::vector<jinja::Value> messages;
  for (const char* role : {"system", "user", "assistant", "user"}) {
    const auto message = std::make_shared<jinja::Dict>();
    message->set("role", std::string(role));
    message->set("content", std::string("a <b> c"));
    messages.emplace_back(message);
  }
  ChatInputs inputs;
  inputs.messages = jinja::make_list(std::move(messages));
  inputs.bos_token = "<s>";
  inputs.eos_token = "</s>";
  jinja::Limits limits;  // as a render has them, but for the time that one input may take
  limits.max_steps = 20'000;
  limits.max_output_bytes = 1 << 20;
  limits.max_depth = 400;  // a sanitized frame is several times as large
  check(chat->render(inputs, limits).status());
}

// The parts as heap blocks of exactly their size. True: each is a container, and the first one's tokenizer and template are sound.
bool use_in_memory(const std::vector<std::string_view>& parts) {
  for (const std::string_view part : parts) {
    const auto* begin = reinterpret_cast<const std::byte*>(part.data());
    const std::vector<std::byte> file(begin, begin + part.size());
    const auto contents = gguf::parse_file(file);
    if (!check(contents.status())) return false;
    look_at(*contents);
    if (part.data() != parts.front().data()) continue;
    use_chat_template(contents->metadata);
    const auto vocabulary = read_vocabulary(contents->metadata);
    if (!check(vocabulary.status())) return false;
    const auto tokenizer = Tokenizer::create(*vocabulary);
    if (!check(tokenizer.status())) return false;
    const auto ids = tokenizer->encode("Hello, w\xC3\xB6rld 123 \xFF<|im_end|>\n", {true, {}});
    if (!ids.ok() || !tokenizer->decode(*ids).ok()) std::abort();
  }
  return true;
}

// A folder of its own, removed at exit; where libFuzzer ends the process it stays.
const fs::path& work_folder() {
  struct Folder {
    fs::path path = fs::temp_directory_path() / ("minfer-fuzz-" + std::to_string(getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
  };
  static const Folder folder;
  return folder.path;
}

fs::path write_parts(const std::vector<std::string_view>& parts) {
  const auto count = static_cast<uint32_t>(parts.size());
  const auto path = [&](uint32_t number) {
    return work_folder() / (count == 1 ? "model.gguf" : gguf::split_file_name("model", number, count));
  };
  for (uint32_t i = 0; i < count; ++i) std::ofstream(path(i + 1), std::ios::binary) << parts[i];
  return path(1);
}

Status generate_two(const Model& model) {
  CParams cparams;
  cparams.n_ctx = std::min(64u, model.info().n_ctx_train);
  MINFER_ASSIGN(const auto session, Session::create(model.engine(), cparams));
  std::vector<int32_t> prompt;
  for (uint32_t i = 0; i < 3; ++i) prompt.push_back(static_cast<int32_t>((40 + 7 * i) % model.info().n_vocab));
  GenerateOptions options;
  options.n_predict = 2;
  options.sampling.temperature = 0;
  return generate(*session, model.tokenizer(), prompt, options, {}).status();
}

void load_and_run(const fs::path& path) {
  static plugin::Registry registry = [] {
    plugin::SearchPaths search;
    search.exe_dir = fs::path(MINFER_FUZZ_BUILD_DIR) / "bin";
    plugin::Registry found(plugin::discover(search), plugin::LogSink());
    if (found.automatic(plugin::Kind::kBackend).empty()) std::abort();  // would fuzz nothing
    return found;
  }();
  ModelOptions options;
  options.path = path;
  BackendSpec cpu;
  cpu.request.name = "cpu";
  cpu.request.options = {{"threads", "1"}};
  options.backends = {cpu};
  const auto model = Model::load(options, registry, [](std::string_view) {});
  if (check(model.status())) check(generate_two(**model));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < kMaxParts) {
    const size_t mark = rest.find(kPartMark);
    if (mark == std::string_view::npos) break;
    parts.push_back(rest.substr(0, mark));
    rest.remove_prefix(mark + kPartMark.size());
  }
  parts.push_back(rest);
  if (use_in_memory(parts)) load_and_run(write_parts(parts));
  return 0;
}
