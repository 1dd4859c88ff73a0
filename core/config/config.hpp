// The settings of a run: plain structs that mirror the YAML file, their defaults, and how a file or an option fills them.
// Precedence: command line (apply_override) > first matching `machines` entry > file > the defaults written here.
// Every range is checked in config.cpp, for files and options alike. Knows no plugin and opens no model: names of backends and
// architectures, and a backend's own options, are passed on as they stand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "config/machine.hpp"
#include "config/model_reference.hpp"
#include "yaml/document.hpp"

namespace minfer {

// How many transformer layers a backend takes. auto: as many as its device's free memory holds.
struct GpuLayers {
  enum class Mode { kAll, kAuto, kCount };
  Mode mode = Mode::kAuto;
  uint32_t count = 0;  // kCount only
  friend bool operator==(const GpuLayers&, const GpuLayers&) = default;
};

// One entry of `backends`.
struct BackendChoice {
  std::string name;
  GpuLayers gpu_layers;
  bool strict = false;  // an op that this backend lacks is an error instead of going to the next one
  yaml::Node options;   // a mapping: the keys that belong to the plugin, with their places
  std::string where;    // place of the entry, for messages: "run.yaml:7:6"
};

enum class KvFormatChoice { kAuto, kF32, kF16, kQ8_0 };
enum class ContextShift { kOff, kOn };

inline constexpr uint32_t kDefaultContextTokens = 4096;

struct ContextConfig {
  // A number given by the user is a limit; without one it is kDefaultContextTokens, raised to the prompt where needed.
  std::optional<uint32_t> n_ctx;
  KvFormatChoice kv_format = KvFormatChoice::kAuto;
  uint32_t n_batch = 512;  // rows of a prefill chunk
  ContextShift shift = ContextShift::kOff;
  friend bool operator==(const ContextConfig&, const ContextConfig&) = default;
};

struct GenerationConfig {
  int32_t n_predict = 512;  // 0: prefill only; -1: until the context is full
  std::vector<std::string> stop;
  friend bool operator==(const GenerationConfig&, const GenerationConfig&) = default;
};

struct SamplingConfig {
  uint64_t seed = 42;
  float temperature = 0.8f;      // 0: greedy
  uint32_t top_k = 40;           // 0: off
  float typical_p = 1.0f;        // 1: off
  float top_p = 0.95f;           // 1: off
  float min_p = 0.0f;            // 0: off
  float xtc_probability = 0.0f;  // 0: off
  float xtc_threshold = 0.5f;
  float top_n_sigma = 0.0f;             // 0: off
  std::map<int32_t, float> logit_bias;  // by token id
  float repeat_penalty = 1.1f;          // 1: off; below 1 repeats are favoured
  float frequency_penalty = 0.0f;       // 0: off
  float presence_penalty = 0.0f;        // 0: off
  int32_t repeat_last_n = 64;           // tokens that the three penalties look back on; -1: the whole context
  float dry_multiplier = 0.0f;          // 0: off
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = 64;  // -1: the whole context
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  uint32_t mirostat = 0;  // 0: off; 1, 2: the version
  float mirostat_tau = 5.0f;
  float mirostat_eta = 0.1f;
  int32_t mirostat_m = 100;
  friend bool operator==(const SamplingConfig&, const SamplingConfig&) = default;
};

enum class PromptTemplate { kAuto, kOff, kName, kFile };

struct PromptConfig {
  PromptTemplate chat_template = PromptTemplate::kAuto;  // kAuto: the model file's own; kOff: the raw prompt
  std::optional<std::string> system;                     // system message; unset differs from empty
  std::string template_source = {};                      // kName: of a shipped template; kFile: absolute path
  friend bool operator==(const PromptConfig&, const PromptConfig&) = default;
};

struct PluginConfig {
  std::vector<std::filesystem::path> dirs;   // absolute
  std::vector<std::filesystem::path> files;  // absolute
  bool allow_unsafe_paths = false;
  friend bool operator==(const PluginConfig&, const PluginConfig&) = default;
};

enum class ColorChoice { kAuto, kAlways, kNever };

struct OutputConfig {
  ColorChoice color = ColorChoice::kAuto;  // kAuto: on a terminal
  friend bool operator==(const OutputConfig&, const OutputConfig&) = default;
};

struct Config {
  ModelReference model;  // empty text: not given
  std::string architecture = "auto";
  std::vector<BackendChoice> backends;  // best first; empty: auto
  ContextConfig context;
  GenerationConfig generation;
  SamplingConfig sampling;
  PromptConfig prompt;
  OutputConfig output;
  PluginConfig plugins;
  std::string machine;  // place of the entry of `machines` that was applied: "run.yaml:12:5"; empty: none
};

// Reads a YAML file. Paths in it are taken relative to its folder. The whole file is checked, machines that do not match too.
[[nodiscard]] Result<Config> load_config(const std::filesystem::path& file, const MachineFacts& machine);
// The same for text already parsed; relative paths are taken from `base_dir`.
[[nodiscard]] Result<Config> read_config(const yaml::Document& document, const std::filesystem::path& base_dir,
                                         const MachineFacts& machine);

// "all", "auto" or a number of layers, as an option of a command line.
[[nodiscard]] Result<GpuLayers> parse_gpu_layers(std::string_view value, std::string_view origin);

// Sets one key by its YAML path, as if it stood in a file: apply_override(c, "sampling.top_k", "20", "--top-k", dir).
// The value is taken as it is, never parsed as YAML. Messages begin with `origin`. On failure `config` is unchanged.
[[nodiscard]] Status apply_override(Config& config, std::string_view key, std::string_view value, std::string_view origin,
                                    const std::filesystem::path& base_dir);
// The same for keys that hold a list: generation.stop, sampling.logit_bias ("ID:BIAS", commas between several),
// sampling.dry_sequence_breakers, plugins.dirs, plugins.files, backends (names).
[[nodiscard]] Status apply_override_list(Config& config, std::string_view key, const std::vector<std::string>& values,
                                         std::string_view origin, const std::filesystem::path& base_dir);

}  // namespace minfer
