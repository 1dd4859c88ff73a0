// The services an opened plugin gets from the host: its log lines and its own options. Remembers which options were asked for.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/error.hpp"
#include "minfer/abi/plugin.h"

namespace minfer::plugin {

enum class LogLevel : uint32_t { kDebug = 0, kInfo = 1, kWarn = 2 };
using LogSink = std::function<void(LogLevel level, std::string_view text)>;

// The plugin's part of the configuration, as text.
using Options = std::map<std::string, std::string, std::less<>>;

// Must stay where it is while the plugin is open.
class HostApi {
 public:
  HostApi(Options options, LogSink log);
  HostApi(const HostApi&) = delete;
  HostApi& operator=(const HostApi&) = delete;

  const mi_host_v1* table() const { return &table_; }
  // Refuses one of these options that nobody asked for, with the nearest one that was.
  Status check_asked(const Options& options) const;

 private:
  Options options_;
  LogSink log_;
  std::set<std::string, std::less<>> asked_;
  mi_host_v1 table_;
};

}  // namespace minfer::plugin
