#include "plugin/registry.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "plugin/device_proxy.hpp"
#include "plugin/loader.hpp"

namespace minfer::plugin {
namespace {

Record device_failure(const Candidate& candidate, const Error& error, std::string hint) {
  return {candidate.path, Stage::kDevices, error.code, error.text, std::move(hint)};
}

}  // namespace

const Candidate* Registry::find(Kind kind, std::string_view name) const {
  for (const Candidate& candidate : found_.candidates)
    if (candidate.is(kind, name) && candidate.shadowed_by.empty()) return &candidate;
  return nullptr;
}

const Candidate* Registry::find_unread(Kind kind, std::string_view name) const {
  for (const Candidate& candidate : found_.candidates)
    if (candidate.manifest.name.empty() && candidate.is_meant(kind, name)) return &candidate;
  return nullptr;
}

NameRequest Registry::name_request(Kind kind, std::string_view name, std::string_view where) const {
  NameRequest request{kind, name, where, {}, {}, found_.searched};
  for (const Candidate& candidate : found_.candidates) {
    if (candidate.manifest.kind != kind || candidate.manifest.name.empty() || !candidate.shadowed_by.empty()) continue;
    request.installed.push_back(candidate.manifest.name);
    if (candidate.record.ok()) request.available.push_back(candidate.manifest.name);
  }
  std::sort(request.installed.begin(), request.installed.end());
  std::sort(request.available.begin(), request.available.end());
  return request;
}

std::vector<std::string> Registry::automatic(Kind kind) const {
  std::vector<const Candidate*> usable;
  for (const Candidate& candidate : found_.candidates)
    if (candidate.manifest.kind == kind && candidate.record.ok() && candidate.shadowed_by.empty() && candidate.manifest.priority > 0)
      usable.push_back(&candidate);
  std::sort(usable.begin(), usable.end(), [](const Candidate* a, const Candidate* b) {
    return a->manifest.priority != b->manifest.priority ? a->manifest.priority > b->manifest.priority : a->manifest.name < b->manifest.name;
  });
  std::vector<std::string> names;
  for (const Candidate* candidate : usable) names.push_back(candidate->manifest.name);
  return names;
}

Status Registry::check_named() const {
  for (const Candidate& candidate : found_.candidates) {
    if (!candidate.named) continue;
    if (const Record record = check_library(candidate); !record.ok()) return named_path_not_usable(record);
  }
  return {};
}

Result<std::shared_ptr<OpenPlugin>> Registry::open(Kind kind, std::string_view name, std::string_view where, Options options) const {
  const Candidate* candidate = find(kind, name);
  if (!candidate) {
    if (const Candidate* unread = find_unread(kind, name)) return not_usable(name_request(kind, name, where), unread->record);
    return not_installed(name_request(kind, name, where));
  }
  LoadResult loaded = open_plugin(*candidate, std::move(options), log_);
  if (!loaded.plugin) return not_usable(name_request(kind, name, where), loaded.record);
  return std::move(loaded.plugin);
}

Result<std::unique_ptr<OpenedBackend>> Registry::open_backend(const BackendRequest& request) {
  Options all = request.offered;
  all.insert(request.options.begin(), request.options.end());
  MINFER_ASSIGN(std::shared_ptr<OpenPlugin> plugin, open(Kind::kBackend, request.name, request.where, std::move(all)));
  const auto refuse = [&](const Error& error, std::string hint) {
    return not_usable(name_request(Kind::kBackend, request.name, request.where),
                      device_failure(*find(Kind::kBackend, request.name), error, std::move(hint)));
  };
  auto devices = open_devices(plugin);
  if (!devices.ok()) return refuse(devices.error(), "check the device, its driver and the backend's options");
  const Status options = plugin->host().check_asked(request.options);
  if (!options.ok()) return refuse(options.error(), "correct or remove the option");
  return std::make_unique<OpenedBackend>(std::move(plugin), std::move(*devices));
}

Result<std::unique_ptr<ModelArchitecture>> Registry::open_model(const MetadataSource& metadata, std::string_view name,
                                                                std::string_view where) {
  if (name != "auto") {
    MINFER_ASSIGN(const std::shared_ptr<OpenPlugin> plugin, open(Kind::kArchitecture, name, where, {}));
    return create_model(plugin, metadata);
  }
  MINFER_ASSIGN(const std::string_view wanted, metadata.get_string("general.architecture"));
  if (const Candidate* named = find(Kind::kArchitecture, wanted)) {
    MINFER_ASSIGN(const std::shared_ptr<OpenPlugin> plugin, open(Kind::kArchitecture, named->manifest.name, where, {}));
    if (match(*plugin, metadata) > 0) return create_model(plugin, metadata);
  }
  // No plugin of that name: one of another name may serve it.
  std::shared_ptr<OpenPlugin> best;
  uint32_t best_score = 0;
  for (const std::string& other : automatic(Kind::kArchitecture)) {
    LoadResult loaded = open_plugin(*find(Kind::kArchitecture, other), {}, log_);
    if (!loaded.plugin) {
      if (log_) log_(LogLevel::kWarn, text("architecture '{}' is skipped: {}", other, describe(loaded.record)));
      continue;
    }
    const uint32_t score = match(*loaded.plugin, metadata);
    if (score > best_score) {
      best_score = score;
      best = std::move(loaded.plugin);
    }
  }
  if (best) return create_model(best, metadata);
  const NameRequest request = name_request(Kind::kArchitecture, wanted, {});
  if (const Candidate* unread = find_unread(Kind::kArchitecture, wanted)) return not_usable(request, unread->record);
  std::string available;
  for (const std::string& known : request.available) available += (available.empty() ? "" : ", ") + known;
  return not_found("general.architecture is {}: no installed plugin serves it (available here: {})", quote(wanted),
                   available.empty() ? "none" : available);
}

Record Registry::probe(const Candidate& candidate) const {
  LoadResult loaded = open_plugin(candidate, {}, {});
  if (!loaded.plugin || candidate.manifest.kind != Kind::kBackend) return loaded.record;
  auto devices = open_devices(loaded.plugin);
  if (!devices.ok()) return device_failure(candidate, devices.error(), "check the device, its driver and the backend's options");
  return loaded.record;
}

}  // namespace minfer::plugin
