// A token that may still be chosen, and the list of those. Between two steps of the chain the list is in ascending id order.
#pragma once

#include <cstdint>
#include <vector>

namespace minfer::sample {

struct Candidate {
  int32_t id;
  float logit;  // finite
};

using Candidates = std::vector<Candidate>;

}  // namespace minfer::sample
