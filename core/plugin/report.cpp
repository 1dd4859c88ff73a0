#include "plugin/report.hpp"

#include "base/nearest_name.hpp"

namespace minfer::plugin {
namespace {

std::string subject(const NameRequest& request) {
  std::string out = text("{} '{}'", kind_word(request.kind), request.name);
  if (!request.where.empty()) out += text(" ({})", request.where);
  return out;
}

template <class Items>
std::string joined(const Items& items, std::string_view separator) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    out += std::string(item);
  }
  return out;
}

std::string available(const NameRequest& request) {
  return text("available here: {}", request.available.empty() ? "none" : joined(request.available, ", "));
}

}  // namespace

std::string_view kind_word(Kind kind) { return kind == Kind::kBackend ? "backend" : "architecture"; }
std::string_view kind_key(Kind kind) { return kind == Kind::kBackend ? "backend" : "arch"; }

std::string_view stage_name(Stage stage) {
  switch (stage) {
    case Stage::kFound: return "found";
    case Stage::kManifest: return "manifest";
    case Stage::kPlatform: return "platform";
    case Stage::kSafety: return "safety";
    case Stage::kAbi: return "abi";
    case Stage::kDlopen: return "dlopen";
    case Stage::kEntry: return "entry";
    case Stage::kDescriptor: return "descriptor";
    case Stage::kOpen: return "open";
    case Stage::kDevices: return "devices";
    case Stage::kReady: return "ready";
  }
  return "unknown";
}

Error not_installed(const NameRequest& request) {
  const std::vector<std::string_view> names(request.installed.begin(), request.installed.end());
  if (const auto nearest = nearest_name(request.name, names)) {
    return not_found("{} is not known\n  do     did you mean '{}'?   ({})", subject(request), *nearest, available(request));
  }
  std::string looked;
  for (const auto& folder : request.searched) looked += text("\n  looked {}", folder.string());
  return not_found("{} is not installed{}\n  do     install the plugin minfer-{}-{}, or name its folder with --plugin-dir   ({})",
                   subject(request), looked.empty() ? "\n  looked nowhere: no plugin folder is configured" : looked, kind_key(request.kind),
                   request.name, available(request));
}

Error named_path_not_usable(const Record& record) {
  return make_error(record.code, "{}, named with --plugin, --plugin-dir or under plugins, cannot be used\n  stage  {}\n  do     {}",
                    record.path.string(), describe(record), record.hint.empty() ? "see the reason above" : record.hint);
}

Error not_usable(const NameRequest& request, const Record& record) {
  return make_error(record.code,
                    "{} is not usable\n  tried  {}\n  stage  {}\n"
                    "  do     {}   ({}; `minfer-plugins --why {}` for all candidates)",
                    subject(request), record.path.string(), describe(record), record.hint.empty() ? "see the reason above" : record.hint,
                    available(request), request.name);
}

std::string describe(const Record& record) {
  if (record.ok()) return std::string(stage_name(record.stage));
  return text("{}: {}", stage_name(record.stage), record.text);
}

}  // namespace minfer::plugin
