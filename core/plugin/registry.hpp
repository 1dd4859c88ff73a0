// The plugins of this process: what was found, and opening one by name. Opening is explicit; a plugin nobody asks for is never loaded.
//
//   Registry registry(discover(search), log);
//   auto backend = registry.open_backend({"x", {{"threads", "8"}}, "run.yaml:7"});
//   auto model = registry.open_model(metadata);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/device.hpp"
#include "plugin/arch_proxy.hpp"
#include "plugin/discovery.hpp"
#include "plugin/host_api.hpp"

namespace minfer::plugin {

struct BackendRequest {
  std::string name;
  Options options;
  std::string where;     // the place that asked, for messages: "run.yaml:7"
  Options offered = {};  // over `options`, for a backend that asks for them; others do not mind
};

// A backend with its devices. Whatever was made from a device must go before it.
class OpenedBackend {
 public:
  OpenedBackend(std::shared_ptr<OpenPlugin> plugin, std::vector<std::unique_ptr<Device>> devices)
      : plugin_(std::move(plugin)), devices_(std::move(devices)) {}
  std::string_view name() const { return plugin_->name(); }
  std::string_view version() const { return plugin_->version(); }
  std::span<const std::unique_ptr<Device>> devices() const { return devices_; }

 private:
  std::shared_ptr<OpenPlugin> plugin_;
  std::vector<std::unique_ptr<Device>> devices_;
};

// Not thread-safe.
class Registry {
 public:
  Registry(Discovery found, LogSink log) : found_(std::move(found)), log_(std::move(log)) {}

  const Discovery& found() const { return found_; }

  // Names that may be chosen without being asked for: nothing speaks against them, priority above 0; best first, then by name.
  std::vector<std::string> automatic(Kind kind) const;

  // The first of the files and folders that the user named and that cannot be used, as an error: it is told whether or not it would
  // be chosen. Loads the plugins among those files and opens none.
  Status check_named() const;

  // Opens the plugin and its devices, and refuses options that it did not ask for. A name that cannot be used is an error that
  // says why and what to do; nothing is replaced in silence.
  Result<std::unique_ptr<OpenedBackend>> open_backend(const BackendRequest& request);

  // name "auto": the architecture that general.architecture names, or else the one whose match is best.
  Result<std::unique_ptr<ModelArchitecture>> open_model(const MetadataSource& metadata, std::string_view name = "auto",
                                                        std::string_view where = {});

  // Loads and opens a candidate (a backend also its devices, without options), closes it again and says how far it came.
  Record probe(const Candidate& candidate) const;

  // What a message about a name that cannot be used needs to know.
  NameRequest name_request(Kind kind, std::string_view name, std::string_view where) const;

 private:
  const Candidate* find(Kind kind, std::string_view name) const;
  const Candidate* find_unread(Kind kind, std::string_view name) const;  // called so, without a manifest that can be read
  Result<std::shared_ptr<OpenPlugin>> open(Kind kind, std::string_view name, std::string_view where, Options options) const;

  Discovery found_;
  LogSink log_;
};

}  // namespace minfer::plugin
