// What became of a plugin, and how a user is told. Every candidate ends in one Record; a refusal always says what was tried, how
// far it came, why it stopped and what to do. Pure text: knows nothing of files or libraries.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace minfer::plugin {

enum class Kind { kBackend, kArchitecture };
std::string_view kind_word(Kind kind);  // "backend", "architecture": in messages
std::string_view kind_key(Kind kind);   // "backend", "arch": in manifests and file names

// How far a candidate came. A good one ends at kFound when it was only listed, at kReady when it was opened.
enum class Stage { kFound, kManifest, kPlatform, kSafety, kAbi, kDlopen, kEntry, kDescriptor, kOpen, kDevices, kReady };
std::string_view stage_name(Stage stage);

struct Record {
  std::filesystem::path path;  // manifest, or the library where there is none
  Stage stage = Stage::kReady;
  ErrorCode code = ErrorCode::kInternal;
  std::string text;  // empty: no failure
  std::string hint;  // what to do; may be empty

  bool ok() const { return text.empty(); }
};

// The three refusals of a name that a user gave. They differ in what he must do: spell it right, install it, or repair it.
// `where` is the place of the name ("run.yaml:7"), or empty.
struct NameRequest {
  Kind kind;
  std::string_view name;
  std::string_view where;
  std::vector<std::string> available;           // names of that kind that may be asked for
  std::vector<std::string> installed;           // all that are there, usable or not: what a misspelt name may have meant
  std::vector<std::filesystem::path> searched;  // folders, in order
};
// No plugin has that name: the nearest of those installed, or where we looked.
Error not_installed(const NameRequest& request);
// There is such a plugin, and it cannot be used.
Error not_usable(const NameRequest& request, const Record& record);

// A plugin file or folder that the user named himself, which is an error whether or not something of it would be used.
Error named_path_not_usable(const Record& record);

// One line for lists: "abi: plugin was built for ABI 2.0, this core provides 1.0".
std::string describe(const Record& record);

}  // namespace minfer::plugin
