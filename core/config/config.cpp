// From the YAML tree to Config: every key, its range and its meaning, once.
#include "config/config.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "yaml/reader.hpp"

namespace minfer {
namespace {

namespace fs = std::filesystem;
using yaml::Node;
using yaml::Reader;

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxBatchRows = 65536;
constexpr int64_t kMaxPenaltyWindow = 1 << 20;
constexpr double kMaxBias = 100, kLeastPositive = 1e-6;

bool is_scalar(const Node& node, std::string_view word) { return node.kind == Node::Kind::kScalar && node.text == word; }

Result<std::string> read_name(const Node& node) {
  MINFER_ASSIGN(std::string name, yaml::read_string(node));
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), allowed))
    return node.error(text("{} is not a plugin name (letters, digits, '_', '-', '.', at most 64)", yaml::quote(name)));
  return name;
}

Result<GpuLayers> read_gpu_layers(const Node& node) {
  if (is_scalar(node, "all")) return GpuLayers{GpuLayers::Mode::kAll, 0};
  if (is_scalar(node, "auto")) return GpuLayers{GpuLayers::Mode::kAuto, 0};
  const auto count = yaml::read_integer(node, {0, kMaxInt32});
  if (!count.ok())
    return node.error(text("must be all, auto or a whole number of layers, found {}",
                           node.kind == Node::Kind::kScalar ? yaml::quote(node.text) : "a list or mapping"));
  return GpuLayers{GpuLayers::Mode::kCount, static_cast<uint32_t>(*count)};
}

// A mapping; a word alone is short for {name: word}. Keys that are not ours become the plugin's options.
Result<BackendChoice> read_backend(const Node& node) {
  BackendChoice backend;
  backend.where = node.place();
  backend.options = node;
  backend.options.kind = Node::Kind::kMapping;
  backend.options.text.clear();
  if (node.kind == Node::Kind::kScalar) {
    MINFER_ASSIGN(backend.name, read_name(node));
    return backend;
  }
  const Node* name = node.find("name");
  if (!name) return node.error("a backend is written {name: NAME, ...}; the key 'name' is missing");
  MINFER_ASSIGN(backend.name, read_name(*name));
  if (const Node* layers = node.find("gpu_layers")) {
    MINFER_ASSIGN(backend.gpu_layers, read_gpu_layers(*layers));
  }
  if (const Node* strict = node.find("strict")) {
    MINFER_ASSIGN(backend.strict, yaml::read_boolean(*strict));
  }
  std::erase_if(backend.options.children,
                [](const Node& child) { return child.key == "name" || child.key == "gpu_layers" || child.key == "strict"; });
  return backend;
}

Result<std::vector<BackendChoice>> read_backends(const Node& node) {
  std::vector<BackendChoice> backends;
  if (is_scalar(node, "auto")) return backends;
  if (node.kind != Node::Kind::kSequence) return node.error("must be auto or a list such as [{name: NAME, gpu_layers: 20}, {name: cpu}]");
  if (node.children.empty()) return node.error("the list is empty; name at least one backend or write auto");
  for (const Node& item : node.children) {
    MINFER_ASSIGN(BackendChoice backend, read_backend(item));
    for (const BackendChoice& other : backends)
      if (other.name == backend.name) return item.error(text("backend '{}' is listed twice, first at {}", backend.name, other.where));
    backends.push_back(std::move(backend));
  }
  return backends;
}

Status read_context(const Node& node, ContextConfig& c) {
  Reader r(node);
  if (const Node* n_ctx = r.node("n_ctx")) {
    if (is_scalar(*n_ctx, "auto")) {
      c.n_ctx.reset();
    } else {
      const auto value = yaml::read_integer(*n_ctx, {1, kMaxInt32});
      r.check(value.status());
      if (value.ok()) c.n_ctx = static_cast<uint32_t>(*value);
    }
  }
  c.kv_format = r.choice(
      "kv_format", c.kv_format,
      {{"auto", KvFormatChoice::kAuto}, {"f32", KvFormatChoice::kF32}, {"f16", KvFormatChoice::kF16}, {"q8_0", KvFormatChoice::kQ8_0}});
  c.n_batch = r.integer("n_batch", c.n_batch, {1, kMaxBatchRows});
  c.shift = r.choice("shift", c.shift, {{"off", ContextShift::kOff}, {"on", ContextShift::kOn}});
  return r.finish();
}

Status read_generation(const Node& node, GenerationConfig& c) {
  Reader r(node);
  c.n_predict = r.integer("n_predict", c.n_predict, {-1, kMaxInt32});
  c.stop = r.strings("stop", std::move(c.stop));
  return r.finish();
}

// A mapping {ID: BIAS}; an option writes a list of texts "ID:BIAS", with commas between several in one.
Result<std::map<int32_t, float>> read_logit_bias(const Node& node) {
  std::map<int32_t, float> biases;
  const auto add = [&](const Node& place, std::string_view id, std::string_view bias) -> Status {
    Node part = place;
    part.kind = Node::Kind::kScalar;
    part.quoted = false;
    part.text = id;
    const auto token = yaml::read_integer(part, {0, kMaxInt32});
    if (!token.ok()) return place.error(text("{} is not a token id", yaml::quote(id)));
    part.text = bias;
    const auto value = yaml::read_number(part, {-kMaxBias, kMaxBias});
    if (!value.ok()) return place.error(text("the bias of token {} must be a number from -100 to 100, found {}", id, yaml::quote(bias)));
    if (!biases.emplace(static_cast<int32_t>(*token), static_cast<float>(*value)).second)
      return place.error(text("token {} is given twice", *token));
    return {};
  };
  if (node.kind == Node::Kind::kMapping) {
    for (const Node& entry : node.children) {
      if (entry.kind != Node::Kind::kScalar || entry.quoted) return entry.error("must be a number from -100 to 100");
      MINFER_TRY(add(entry, entry.key, entry.text));
    }
    return biases;
  }
  if (node.kind != Node::Kind::kSequence) return node.error("must be a mapping {ID: BIAS}, for example {42: -100}");
  for (const Node& item : node.children) {
    MINFER_ASSIGN(const std::string list, yaml::read_string(item));
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size()), colon = list.find(':', begin);
      if (colon >= end) return item.error(text("must be ID:BIAS, for example 42:-100, found {}", yaml::quote(list)));
      MINFER_TRY(add(item, std::string_view(list).substr(begin, colon - begin), std::string_view(list).substr(colon + 1, end - colon - 1)));
      begin = end + 1;
    }
  }
  return biases;
}

Status read_sampling(const Node& node, SamplingConfig& c) {
  Reader r(node);
  c.seed = r.unsigned_integer("seed", c.seed);
  c.temperature = r.number("temperature", c.temperature, {.min = 0});
  c.top_k = r.integer("top_k", c.top_k, {0, kMaxInt32});
  c.typical_p = r.number("typical_p", c.typical_p, {0, 1});
  c.top_p = r.number("top_p", c.top_p, {0, 1});
  c.min_p = r.number("min_p", c.min_p, {0, 1});
  c.xtc_probability = r.number("xtc_probability", c.xtc_probability, {0, 1});
  c.xtc_threshold = r.number("xtc_threshold", c.xtc_threshold, {0, 0.5});
  c.top_n_sigma = r.number("top_n_sigma", c.top_n_sigma, {.min = 0});
  if (const Node* bias = r.node("logit_bias")) {
    auto biases = read_logit_bias(*bias);
    r.check(biases.status());
    if (biases.ok()) c.logit_bias = *std::move(biases);
  }
  c.repeat_penalty = r.number("repeat_penalty", c.repeat_penalty, {.min = kLeastPositive});
  c.frequency_penalty = r.number("frequency_penalty", c.frequency_penalty, {});
  c.presence_penalty = r.number("presence_penalty", c.presence_penalty, {});
  c.repeat_last_n = r.integer("repeat_last_n", c.repeat_last_n, {-1, kMaxPenaltyWindow});
  c.dry_multiplier = r.number("dry_multiplier", c.dry_multiplier, {.min = 0});
  c.dry_base = r.number("dry_base", c.dry_base, {.min = 1});
  c.dry_allowed_length = r.integer("dry_allowed_length", c.dry_allowed_length, {1, kMaxInt32});
  c.dry_penalty_last_n = r.integer("dry_penalty_last_n", c.dry_penalty_last_n, {-1, kMaxPenaltyWindow});
  if (c.dry_multiplier > 0 && c.dry_penalty_last_n == 0)
    r.check(node.error("dry_penalty_last_n is 0, where DRY sees nothing: give a window, or dry_multiplier 0 to turn DRY off"));
  c.dry_sequence_breakers = r.strings("dry_sequence_breakers", std::move(c.dry_sequence_breakers));
  if (c.dry_sequence_breakers == std::vector<std::string>{"none"}) c.dry_sequence_breakers.clear();  // what an option can write
  c.mirostat = r.integer("mirostat", c.mirostat, {0, 2});
  c.mirostat_tau = r.number("mirostat_tau", c.mirostat_tau, {.min = kLeastPositive});
  c.mirostat_eta = r.number("mirostat_eta", c.mirostat_eta, {.min = kLeastPositive});
  c.mirostat_m = r.integer("mirostat_m", c.mirostat_m, {1, kMaxInt32});
  return r.finish();
}

// auto, off, a file (its name holds '/' or '.') or the name of a template that is looked up later.
Status read_template(const Node& node, const fs::path& base_dir, PromptConfig& c) {
  c.template_source.clear();
  if (is_scalar(node, "auto") || is_scalar(node, "off")) {
    c.chat_template = node.text == "off" ? PromptTemplate::kOff : PromptTemplate::kAuto;
    return {};
  }
  MINFER_ASSIGN(std::string source, yaml::read_string(node));
  if (source.find_first_of("/.") != std::string::npos) {
    if (source.find('\0') != std::string::npos) return node.error("a path holds a zero byte");
    if (source.front() == '~') return node.error("'~' is not expanded here; write the full path");
    c.chat_template = PromptTemplate::kFile;
    c.template_source = (base_dir / source).lexically_normal().string();
    return {};
  }
  const auto allowed = [](char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '-';
  };
  if (source.empty() || !std::all_of(source.begin(), source.end(), allowed))
    return node.error(
        text("must be auto, off, the name of a template or a file (with '/' or '.' in its name), found {}", yaml::quote(source)));
  c.chat_template = PromptTemplate::kName;
  c.template_source = std::move(source);
  return {};
}

Status read_prompt(const Node& node, const fs::path& base_dir, PromptConfig& c) {
  Reader r(node);
  if (const Node* chat_template = r.node("template")) r.check(read_template(*chat_template, base_dir, c));
  if (r.node("system")) c.system = r.string("system", "");
  return r.finish();
}

Status read_output(const Node& node, OutputConfig& c) {
  Reader r(node);
  c.color = r.choice("color", c.color, {{"auto", ColorChoice::kAuto}, {"always", ColorChoice::kAlways}, {"never", ColorChoice::kNever}});
  return r.finish();
}

Result<std::vector<fs::path>> read_paths(const Node& node, const fs::path& base_dir) {
  MINFER_ASSIGN(const std::vector<std::string> texts, yaml::read_strings(node));
  std::vector<fs::path> paths;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].find('\0') != std::string::npos) return node.children[i].error("a path holds a zero byte");
    if (texts[i].empty()) return node.children[i].error("an empty path");
    if (texts[i].front() == '~') return node.children[i].error("'~' is not expanded here; write the full path");
    paths.push_back((base_dir / texts[i]).lexically_normal());
  }
  return paths;
}

Status read_plugins(const Node& node, const fs::path& base_dir, PluginConfig& c) {
  Reader r(node);
  for (auto [key, target] : {std::pair{"dirs", &c.dirs}, std::pair{"files", &c.files}}) {
    const Node* list = r.node(key);
    if (!list) continue;
    auto paths = read_paths(*list, base_dir);
    r.check(paths.status());
    if (paths.ok()) *target = *std::move(paths);
  }
  c.allow_unsafe_paths = r.boolean("allow_unsafe_paths", c.allow_unsafe_paths);
  return r.finish();
}

// Reads the keys that are present over what `c` holds. `caller_key` is one more legal key, which the caller reads.
Status read_keys(const Node& root, const fs::path& base_dir, std::string_view caller_key, Config& c) {
  Reader r(root);
  if (const Node* model = r.node("model")) {
    c.model = {r.string("model", ""), base_dir, model->place()};
    if (r.ok() && c.model.text.empty()) r.fail(model->error("is empty; write a path or the name of a model"));
  }
  if (const Node* architecture = r.node("architecture")) {
    auto name = read_name(*architecture);
    r.check(name.status());
    if (name.ok()) c.architecture = *std::move(name);
  }
  if (const Node* list = r.node("backends")) {
    auto backends = read_backends(*list);
    r.check(backends.status());
    if (backends.ok()) c.backends = *std::move(backends);
  }
  if (const Node* section = r.node("context")) r.check(read_context(*section, c.context));
  if (const Node* section = r.node("generation")) r.check(read_generation(*section, c.generation));
  if (const Node* section = r.node("sampling")) r.check(read_sampling(*section, c.sampling));
  if (const Node* section = r.node("prompt")) r.check(read_prompt(*section, base_dir, c.prompt));
  if (const Node* section = r.node("output")) r.check(read_output(*section, c.output));
  if (const Node* section = r.node("plugins")) r.check(read_plugins(*section, base_dir, c.plugins));
  if (!caller_key.empty()) r.node(caller_key);
  return r.finish();
}

Result<bool> matches(const Node& when, const MachineFacts& machine) {
  Reader r(when);
  const std::string hostname = r.string("hostname", "*");
  const std::string os = r.choice<std::string>("os", machine.os, {{"linux", "linux"}, {"macos", "macos"}, {"windows", "windows"}});
  if (r.ok() && when.children.empty()) r.fail(when.error("names no condition; write hostname or os (hostname: \"*\" fits every machine)"));
  MINFER_TRY(r.finish());
  return glob_match(hostname, machine.hostname) && os == machine.os;
}

// The first entry of `machines` that fits, or null. Every entry is checked whole.
Result<const Node*> matching_entry(const Node& machines, const fs::path& base_dir, const MachineFacts& machine) {
  if (machines.kind != Node::Kind::kSequence)
    return machines.error("must be a list of entries {when: {hostname: PATTERN, os: NAME}, KEY: VALUE ...}");
  const Node* first = nullptr;
  for (const Node& entry : machines.children) {
    Config scratch;
    MINFER_TRY(read_keys(entry, base_dir, "when", scratch));
    const Node* when = entry.find("when");
    if (!when) return entry.error("the key 'when' is missing; write when: {hostname: PATTERN} or when: {os: NAME}");
    MINFER_ASSIGN(const bool fits, matches(*when, machine));
    if (fits && !first) first = &entry;
  }
  return first;
}

Node override_node(std::string_view text, const Node& origin) {
  Node node = origin;
  node.text = text;
  return node;
}

// Wraps the value in the mappings that its key path names and reads it like a file.
Status apply(Config& config, std::string_view key, Node value, const fs::path& base_dir) {
  while (true) {
    const size_t dot = key.rfind('.');
    value.key = key.substr(dot == std::string_view::npos ? 0 : dot + 1);
    key = key.substr(0, dot == std::string_view::npos ? 0 : dot);
    Node parent;
    parent.kind = Node::Kind::kMapping;
    parent.file = value.file;
    parent.path = key;
    parent.children.push_back(std::move(value));
    value = std::move(parent);
    if (dot == std::string_view::npos) break;
  }
  Config changed = config;
  MINFER_TRY(read_keys(value, base_dir, "", changed));
  config = std::move(changed);
  return {};
}

Node override_origin(std::string_view key, std::string_view origin) {
  Node node;
  node.file = std::make_shared<const std::string>(origin);
  node.path = key;
  return node;
}

}  // namespace

Result<Config> read_config(const yaml::Document& document, const fs::path& base_dir, const MachineFacts& machine) {
  Config config;
  MINFER_TRY(read_keys(document.root, base_dir, "machines", config));
  const Node* machines = document.root.find("machines");
  if (!machines) return config;
  MINFER_ASSIGN(const Node* entry, matching_entry(*machines, base_dir, machine));
  if (!entry) return config;

  // A key of the entry replaces the file's key of that name whole: what it leaves out goes back to the default.
  Node merged = document.root;
  std::erase_if(merged.children, [&](const Node& child) { return child.key == "machines" || entry->find(child.key); });
  for (const Node& child : entry->children)
    if (child.key != "when") merged.children.push_back(child);
  config = Config();
  MINFER_TRY(read_keys(merged, base_dir, "", config));
  config.machine = entry->place();
  return config;
}

Result<Config> load_config(const fs::path& file, const MachineFacts& machine) {
  MINFER_ASSIGN(const yaml::Document document, yaml::parse_yaml_file(file));
  std::error_code error;
  const fs::path absolute = fs::absolute(file, error);
  if (error) return io_error("{}: {}", file.string(), error.message());
  return read_config(document, absolute.parent_path(), machine);
}

Result<GpuLayers> parse_gpu_layers(std::string_view value, std::string_view origin) {
  return read_gpu_layers(override_node(value, override_origin("", origin)));
}

Status apply_override(Config& config, std::string_view key, std::string_view value, std::string_view origin, const fs::path& base_dir) {
  return apply(config, key, override_node(value, override_origin(key, origin)), base_dir);
}

Status apply_override_list(Config& config, std::string_view key, const std::vector<std::string>& values, std::string_view origin,
                           const fs::path& base_dir) {
  Node list = override_origin(key, origin);
  list.kind = Node::Kind::kSequence;
  for (size_t i = 0; i < values.size(); ++i) {
    Node item = override_node(values[i], list);
    item.kind = Node::Kind::kScalar;
    item.children.clear();
    item.path += text("[{}]", i);
    list.children.push_back(std::move(item));
  }
  return apply(config, key, std::move(list), base_dir);
}

}  // namespace minfer
