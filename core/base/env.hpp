// The one place that reads the environment. Only programs/ may call it: libraries take options.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace minfer {

// An empty value counts as absent.
inline std::optional<std::string> env(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

}  // namespace minfer
