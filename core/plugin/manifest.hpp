// The manifest beside a plugin's library: what is known about it before any of its code is loaded.
//   kind: backend            # or arch
//   name: x                  # [a-z0-9_], at most 32
//   version: "1.2.0"
//   library: minfer-backend-x.so   # in the same folder
//   abi: "1.0"               # ABI version of the headers it was built from
//   abi_hash: "<64 hex digits>"      # of those headers
//   platform: linux-x86_64
//   priority: 100            # for automatic choice, higher first; 0: only when named
#pragma once

#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "plugin/report.hpp"

namespace minfer::plugin {

inline constexpr std::string_view kManifestSuffix = ".plugin.yaml";
inline constexpr size_t kMaxManifestBytes = 4096;

struct Manifest {
  Kind kind = Kind::kBackend;
  std::string name;
  std::string version;
  std::string library;  // a file name
  uint32_t abi_major = 0;
  uint32_t abi_minor = 0;
  std::string abi_hash;
  std::string platform;
  int priority = 0;
};

// Strict: every key is needed, none may be unknown. Errors name the file, the place and the key.
Result<Manifest> read_manifest(const std::filesystem::path& path);
Result<Manifest> parse_manifest(std::string_view text, std::string_view file_name);

}  // namespace minfer::plugin
