// Which of the backends a machine uses, and why not the others. Named ones are used or are errors; of those chosen automatically
// the ones that this machine cannot use are left out.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plugin/registry.hpp"

namespace minfer::plugin {

struct ConsideredBackend {
  enum class Verdict {
    kChosen,
    kUnusable,       // error says why
    kLowerPriority,  // automatic choice had a backend that runs everything before it; not opened
  };
  BackendRequest request;
  Verdict verdict = Verdict::kLowerPriority;
  std::optional<Error> error;
  std::unique_ptr<OpenedBackend> opened;  // kChosen
};

// Opens them in their order. automatic: the best devices are enough, so it ends behind the first backend with a host device, which
// takes what those before it lack.
std::vector<ConsideredBackend> open_in_order(Registry& registry, std::vector<BackendRequest> requests, bool automatic);

}  // namespace minfer::plugin
