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

// Descending logit, then ascending id.
inline bool ranks_before(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

}  // namespace minfer::sample
