#include "plugin/host_api.hpp"

#include <vector>

#include "base/nearest_name.hpp"
#include "plugin/abi_error.hpp"

namespace minfer::plugin {

HostApi::HostApi(Options options, LogSink log) : options_(std::move(options)), log_(std::move(log)) {
  table_ = {};
  table_.struct_size = sizeof table_;
  table_.abi_minor = MI_ABI_MINOR;
  table_.ctx = this;
  table_.log = [](void* ctx, uint32_t level, mi_string text) noexcept {
    const auto& self = *static_cast<const HostApi*>(ctx);
    if (!self.log_) return;
    try {
      self.log_(level <= MI_LOG_WARN ? static_cast<LogLevel>(level) : LogLevel::kWarn, view(text));
    } catch (...) {  // a log that fails must not end a run
    }
  };
  table_.config_get = [](void* ctx, mi_string key, mi_string* out) noexcept -> int32_t {
    auto& self = *static_cast<HostApi*>(ctx);
    return host_call(nullptr, [&]() -> Status {
      self.asked_.emplace(view(key));
      const auto found = self.options_.find(view(key));
      if (found == self.options_.end()) return not_found("{}", view(key));
      *out = to_abi(found->second);
      return {};
    });
  };
}

Status HostApi::check_asked(const Options& options) const {
  for (const auto& [key, value] : options) {
    if (asked_.count(key)) continue;
    std::string known;
    for (const std::string& name : asked_) known += (known.empty() ? "" : ", ") + name;
    const std::vector<std::string_view> names(asked_.begin(), asked_.end());
    const auto nearest = nearest_name(key, names);
    return invalid("option '{}' is not known{}; its options: {}", key, nearest ? text(", did you mean '{}'?", *nearest) : "",
                   known.empty() ? "none" : known);
  }
  return {};
}

}  // namespace minfer::plugin
