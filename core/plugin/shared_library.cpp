#include "plugin/shared_library.hpp"

#include <boost/dll/shared_library.hpp>
#include <mutex>
#include <vector>

namespace minfer::plugin {

namespace {

// Of Boost's words around it, those of the system's loader.
std::string reason(std::string_view said) {
  constexpr std::string_view kBefore = "(dlerror system message: ", kAfter = "): ";
  const size_t begin = said.find(kBefore), end = said.rfind(kAfter);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + kBefore.size()) return std::string(said);
  return std::string(said.substr(begin + kBefore.size(), end - begin - kBefore.size()));
}

}  // namespace

LoadedQuery load_query(const std::filesystem::path& path) {
  // Kept for ever on purpose, and reachable for leak checkers. One mutex: loading is not thread-safe everywhere.
  static std::mutex mutex;
  static auto* const loaded = new std::vector<std::unique_ptr<boost::dll::shared_library>>();

  const std::lock_guard lock(mutex);
  LoadedQuery out;
  if (!path.is_absolute()) return {nullptr, Stage::kDlopen, "the path is not absolute"};
  try {
    // The throwing overload: only its text carries the loader's reason.
    auto library = std::make_unique<boost::dll::shared_library>(path, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    loaded->push_back(std::move(library));
  } catch (const std::exception& e) {
    return {nullptr, Stage::kDlopen, reason(e.what())};
  } catch (...) {
    return {nullptr, Stage::kDlopen, "the library threw while it was loaded"};
  }
  boost::dll::shared_library& library = *loaded->back();
  if (!library.has(MI_PLUGIN_QUERY_NAME)) return {nullptr, Stage::kEntry, text("the library has no symbol {}", MI_PLUGIN_QUERY_NAME)};
  out.query = &library.get<const mi_plugin_desc*()>(MI_PLUGIN_QUERY_NAME);
  return out;
}

}  // namespace minfer::plugin
