#include "plugin/discovery.hpp"

#include <algorithm>
#include <set>

#include "plugin/abi_check.hpp"
#include "plugin/library_file.hpp"
#include "plugin/safety.hpp"

namespace minfer::plugin {
namespace {
namespace fs = std::filesystem;

class Finder {
 public:
  explicit Finder(bool allow_unsafe_paths) : allow_unsafe_(allow_unsafe_paths) {}

  // A manifest or a library, named by the user.
  void add_named_file(const fs::path& named) {
    add_file(named, "--plugin");
    out_.candidates.back().named = true;
  }

  // must_exist: a folder that cannot be read is reported. named: by the user, in this run.
  void add_dir(const fs::path& dir, std::string_view origin, bool must_exist, bool named = false) {
    if (dir.empty()) {
      if (!must_exist) return;
      add_failed(dir, origin, Stage::kFound, invalid("the path is empty"), "name a folder");
      out_.candidates.back().named = named;
      return;
    }
    const fs::path folder = fs::absolute(dir).lexically_normal();
    out_.searched.push_back(folder);
    std::error_code ec;
    std::vector<fs::path> manifests, libraries;
    fs::directory_iterator entries(folder, ec);
    for (; !ec && entries != fs::directory_iterator(); entries.increment(ec)) {
      const std::string name = entries->path().filename().string();
      if (name.ends_with(kManifestSuffix)) manifests.push_back(entries->path());
      if (name.ends_with(".so")) libraries.push_back(entries->path());
    }
    if (ec && must_exist) {
      add_failed(folder, origin, Stage::kFound, io_error("the folder cannot be read: {}", ec.message()), "check the path");
      out_.candidates.back().named = named;
    }
    std::sort(manifests.begin(), manifests.end());
    std::sort(libraries.begin(), libraries.end());
    std::set<fs::path> known;
    for (const fs::path& path : manifests) {
      add_manifest(path, origin);
      known.insert(folder / out_.candidates.back().manifest.library);
      known.insert(library_of(path));
    }
    for (const fs::path& path : libraries)
      if (!known.count(path)) add_bare_library(path, origin);
  }

  void notice(std::string text) { out_.notices.push_back(std::move(text)); }

  Discovery take() {
    for (size_t i = 0; i < out_.candidates.size(); ++i) {
      Candidate& later = out_.candidates[i];
      if (later.manifest.name.empty()) continue;
      for (size_t j = 0; j < i && later.shadowed_by.empty(); ++j)
        if (out_.candidates[j].is(later.manifest.kind, later.manifest.name)) later.shadowed_by = out_.candidates[j].path;
    }
    return std::move(out_);
  }

 private:
  static fs::path manifest_of(fs::path library) { return library.replace_extension().string() + std::string(kManifestSuffix); }
  static fs::path library_of(const fs::path& manifest) {
    const std::string text = manifest.string();
    return text.substr(0, text.size() - kManifestSuffix.size()) + ".so";
  }

  void add_failed(const fs::path& path, std::string_view origin, Stage stage, const Error& error, std::string hint) {
    Candidate candidate;
    candidate.path = path;
    candidate.origin = origin;
    candidate.record = {path, stage, error.code, error.text, std::move(hint)};
    out_.candidates.push_back(std::move(candidate));
  }

  void add_file(const fs::path& named, std::string_view origin) {
    if (named.empty()) return add_failed(named, origin, Stage::kFound, invalid("the path is empty"), "name a file");
    const fs::path path = fs::absolute(named);
    if (path.string().ends_with(kManifestSuffix)) return add_manifest(path, origin);
    const fs::path manifest = manifest_of(path);
    std::error_code ec;
    if (fs::exists(manifest, ec)) return add_manifest(manifest, origin);
    if (fs::exists(path, ec)) return add_bare_library(path, origin);
    add_failed(path, origin, Stage::kFound, not_found("the file does not exist"), "check the path");
  }

  void add_bare_library(const fs::path& path, std::string_view origin) {
    add_failed(path, origin, Stage::kManifest, not_found("no manifest {} stands beside the library", manifest_of(path).filename().string()),
               "install the plugin with its manifest, or remove the file");
  }

  void add_manifest(const fs::path& path, std::string_view origin) {
    const auto canonical = canonical_path(path);
    if (!canonical.ok()) return add_failed(path, origin, Stage::kFound, canonical.error(), "check the path");
    const auto manifest = read_manifest(*canonical);
    if (!manifest.ok()) return add_failed(*canonical, origin, Stage::kManifest, manifest.error(), "install the plugin again");
    Candidate candidate;
    candidate.path = *canonical;
    candidate.origin = origin;
    candidate.manifest = *manifest;
    candidate.record = judge(candidate);
    out_.candidates.push_back(std::move(candidate));
  }

  // Everything that can be said without loading the library. Fills candidate.library.
  Record judge(Candidate& candidate) {
    const auto fail = [&](Stage stage, const Error& error, std::string hint) {
      return Record{candidate.path, stage, error.code, error.text, std::move(hint)};
    };
    if (const auto refusal = check_platform(candidate.manifest)) return fail(Stage::kPlatform, refusal->error, refusal->hint);
    const auto library = canonical_path(candidate.path.parent_path() / candidate.manifest.library);
    if (!library.ok()) return fail(Stage::kFound, library.error(), "the manifest is there, its library is not: install the plugin again");
    std::error_code ec;
    if (!fs::is_regular_file(*library, ec))  // loading from a pipe would never end
      return fail(Stage::kFound, invalid("{} is not a regular file", library->string()), "install the plugin again");
    candidate.library = *library;
    for (const fs::path& file : {candidate.path, candidate.library}) {
      const auto reason = world_writable(file);
      if (!reason) continue;
      if (!allow_unsafe_) return fail(Stage::kSafety, invalid("{}", *reason), "chmod o-w it, or set plugins.allow_unsafe_paths: true");
      notice(text("{}: {}, allowed by allow_unsafe_paths", file.string(), *reason));
    }
    if (const auto refusal = check_library_file(candidate.library)) return fail(refusal->stage, refusal->error, refusal->hint);
    if (const auto refusal = check_manifest_abi(candidate.manifest)) return fail(Stage::kAbi, refusal->error, refusal->hint);
    return {candidate.path, Stage::kFound, ErrorCode::kInternal, "", ""};
  }

  bool allow_unsafe_;
  Discovery out_;
};

}  // namespace

bool Candidate::is_meant(Kind kind, std::string_view name) const {
  if (!manifest.name.empty()) return is(kind, name);
  return path.filename().string().starts_with(text("minfer-{}-{}.", kind_key(kind), name));
}

Discovery discover(const SearchPaths& search) {
  Finder finder(search.allow_unsafe_paths);
  for (const fs::path& file : search.files) finder.add_named_file(file);
  for (const fs::path& dir : search.dirs) finder.add_dir(dir, "--plugin-dir", true, true);

  if (!search.env_dirs.empty() && process_is_privileged()) {
    finder.notice("MINFER_PLUGIN_PATH is ignored: this process runs with more rights than its user");
  } else {
    for (size_t begin = 0; begin < search.env_dirs.size();) {
      const size_t end = std::min(search.env_dirs.find(':', begin), search.env_dirs.size());
      const fs::path dir = search.env_dirs.substr(begin, end - begin);
      begin = end + 1;
      if (dir.empty()) continue;
      if (dir.is_absolute())
        finder.add_dir(dir, "MINFER_PLUGIN_PATH", true);
      else
        finder.notice(text("MINFER_PLUGIN_PATH: '{}' is ignored: only absolute folders are searched", dir.string()));
    }
  }
  if (!search.exe_dir.empty()) {
    finder.add_dir(search.exe_dir / "plugins", "program folder", false);
    finder.add_dir(search.exe_dir / ".." / "lib" / "minfer" / "plugins", "program folder", false);
  }
  finder.add_dir(search.prefix_dir, "installed", false);
  return finder.take();
}

}  // namespace minfer::plugin
