// "Did you mean ...?": the known name that a misspelt one was most likely meant to be.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace minfer {

// The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours; ASCII case ignored), the first
// one on a tie. None when even the best is too far away (more than a third of the name, at least 1) or names exceed 64 bytes.
std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace minfer
