// Finds plugins by their manifests. Reads files only: no code of a plugin runs, no library is loaded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plugin/manifest.hpp"
#include "plugin/report.hpp"

namespace minfer::plugin {

// Where to look, in this order. The first plugin of a (kind, name) wins, later ones are shadowed.
struct SearchPaths {
  std::vector<std::filesystem::path> files;  // manifests, or libraries with their manifest beside them
  std::vector<std::filesystem::path> dirs;   // named by the user: a missing one is reported
  std::string env_dirs;                      // MINFER_PLUGIN_PATH: absolute folders separated by ':'
  std::filesystem::path exe_dir;             // folder of the program: plugins/ and ../lib/minfer/plugins in it
  std::filesystem::path prefix_dir;          // where the build installs plugins
  bool allow_unsafe_paths = false;
};

// exe_dir and prefix_dir as they are for this process; the rest is left to the caller.
SearchPaths standard_search();

struct Candidate {
  std::filesystem::path path;         // canonical: the manifest, or a library that has none
  std::string origin;                 // "--plugin", "--plugin-dir", "MINFER_PLUGIN_PATH", "program folder", "installed"
  Manifest manifest;                  // name is empty where it could not be read
  std::filesystem::path library;      // canonical, in the manifest's folder
  Record record;                      // judged without loading: ok() = nothing speaks against it
  std::filesystem::path shadowed_by;  // the candidate that is used instead; empty: this one is
  bool named = false;                 // by the user, as a file or as a folder that cannot be read

  bool is(Kind kind, std::string_view name) const { return manifest.name == name && manifest.kind == kind; }
  // is(), and where the manifest cannot be read, whether the file is called as that plugin's would be.
  bool is_meant(Kind kind, std::string_view name) const;
};

struct Discovery {
  std::vector<Candidate> candidates;            // in search order, in a folder by file name
  std::vector<std::filesystem::path> searched;  // folders, whether they exist or not
  std::vector<std::string> notices;             // one line each: what was ignored or allowed against the rules
};

// Never fails as a whole: what is wrong stands in the records. Not thread-safe against changes of the folders.
Discovery discover(const SearchPaths& search);

}  // namespace minfer::plugin
