// A temporary folder with plugins in it: manifests with one line changed, probe libraries under names of choice.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "minfer/abi/abi_hash.h"
#include "plugin/discovery.hpp"
#include "support/support.hpp"

namespace minfer::test {

// A good manifest; `key: value` replaces the line of that key.
inline std::string manifest_text(std::string_view name, std::string_view key = {}, std::string_view value = {}) {
  const std::pair<std::string, std::string> lines[] = {
      {"kind", "backend"},
      {"name", std::string(name)},
      {"version", "\"1.2.0\""},
      {"library", text("minfer-backend-{}.so", name)},
      {"abi", "\"1.0\""},
      {"abi_hash", text("\"{}\"", MI_ABI_HASH)},
      {"platform", MINFER_PLATFORM},
      {"priority", "100"},
  };
  std::string out;
  for (const auto& [k, v] : lines) out += k + ": " + (k == key ? std::string(value) : v) + "\n";
  return out;
}

// The header of a shared library for this machine that holds nothing.
inline std::string empty_library() {
  std::string bytes(64, '\0');
  std::ifstream("/proc/self/exe", std::ios::binary).read(bytes.data(), 64);
  bytes[16] = 3;                                                    // e_type: ET_DYN
  bytes[56] = bytes[57] = '\0';                                     // e_phnum
  for (int i = 32; i < 40; ++i) bytes[static_cast<size_t>(i)] = 0;  // e_phoff
  return bytes;
}

class PluginFolder {
 public:
  const std::filesystem::path& path() const { return dir_.path(); }

  // Manifest of `name` with one line changed, and a library beside it: a probe, or one that holds nothing where probe is empty.
  std::filesystem::path add(std::string_view name, std::string_view probe = {}, std::string_view key = {}, std::string_view value = {}) {
    const std::filesystem::path library = path() / text("minfer-backend-{}.so", name);
    if (probe.empty())
      write_file(library, empty_library());
    else
      std::filesystem::copy_file(std::filesystem::path(MINFER_PROBE_DIR) / text("probe_{}.so", probe), library);
    const std::filesystem::path manifest = path() / text("minfer-backend-{}.plugin.yaml", name);
    write_file(manifest, manifest_text(name, key, value));
    return manifest;
  }

  plugin::Discovery discover() const {
    plugin::SearchPaths search;
    search.dirs = {path()};
    return plugin::discover(search);
  }

 private:
  TempDir dir_;
};

}  // namespace minfer::test
