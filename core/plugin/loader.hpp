// Takes a candidate from its library to an opened plugin, stage by stage, and undoes what was done when a stage fails.
#pragma once

#include <memory>

#include "plugin/discovery.hpp"
#include "plugin/host_api.hpp"

namespace minfer::plugin {

// A plugin between open and close. Held by everything made from it, so that it closes last. Its library stays loaded.
class OpenPlugin {
 public:
  OpenPlugin(const mi_plugin_desc* desc, std::unique_ptr<HostApi> host, void* self, const void* table)
      : desc_(desc), host_(std::move(host)), self_(self), table_(table) {}
  ~OpenPlugin() { desc_->close(self_); }
  OpenPlugin(const OpenPlugin&) = delete;
  OpenPlugin& operator=(const OpenPlugin&) = delete;

  std::string_view name() const { return desc_->name; }
  std::string_view version() const { return desc_->version; }
  std::string_view build() const { return desc_->build ? desc_->build : ""; }
  const HostApi& host() const { return *host_; }
  void* self() const { return self_; }
  const mi_backend_v1* backend() const { return static_cast<const mi_backend_v1*>(table_); }
  const mi_arch_v1* arch() const { return static_cast<const mi_arch_v1*>(table_); }

 private:
  const mi_plugin_desc* desc_;
  std::unique_ptr<HostApi> host_;
  void* self_;
  const void* table_;
};

struct LoadResult {
  std::shared_ptr<OpenPlugin> plugin;  // null where record is a failure
  Record record;
};

// As far as it goes without running more of the plugin than its query: loaded, and fit for this core. Opens nothing.
Record check_library(const Candidate& candidate);

// The table is checked to be complete for the candidate's kind.
LoadResult open_plugin(const Candidate& candidate, Options options, const LogSink& log);

}  // namespace minfer::plugin
