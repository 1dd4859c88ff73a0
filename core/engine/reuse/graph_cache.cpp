#include "engine/reuse/graph_cache.hpp"

namespace minfer {

CompiledGraph* GraphCache::find(const GraphParams& params) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if ((*it)->params != params) continue;
    entries_.splice(entries_.begin(), entries_, it);
    return entries_.front().get();
  }
  return nullptr;
}

CompiledGraph& GraphCache::insert(std::unique_ptr<CompiledGraph> compiled) {
  while (!entries_.empty() && entries_.size() >= capacity_) entries_.pop_back();
  entries_.push_front(std::move(compiled));
  return *entries_.front();
}

}  // namespace minfer
