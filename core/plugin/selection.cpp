#include "plugin/selection.hpp"

#include <algorithm>

namespace minfer::plugin {

std::vector<ConsideredBackend> open_in_order(Registry& registry, std::vector<BackendRequest> requests, bool automatic) {
  using Verdict = ConsideredBackend::Verdict;
  std::vector<ConsideredBackend> considered;
  bool enough = false;
  for (BackendRequest& request : requests) {
    ConsideredBackend backend;
    backend.request = std::move(request);
    if (!enough) {
      auto opened = registry.open_backend(backend.request);
      if (opened.ok()) {
        backend.verdict = Verdict::kChosen;
        backend.opened = std::move(*opened);
        const auto& devices = backend.opened->devices();
        enough = automatic && std::any_of(devices.begin(), devices.end(), [](const auto& device) { return device->info().host; });
      } else {
        backend.verdict = Verdict::kUnusable;
        backend.error = opened.error();
      }
    }
    considered.push_back(std::move(backend));
  }
  return considered;
}

}  // namespace minfer::plugin
