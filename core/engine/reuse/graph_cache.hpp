// The most recently used compiled graphs of a session, found by equal GraphParams and nothing else.
#pragma once

#include <list>
#include <memory>

#include "engine/reuse/compiled_graph.hpp"

namespace minfer {

class GraphCache {
 public:
  explicit GraphCache(size_t capacity = 8) : capacity_(capacity) {}

  // The graph of these params, moved to the front; nullptr when there is none.
  CompiledGraph* find(const GraphParams& params);
  // Takes a graph in at the front; the least recently used one makes room.
  CompiledGraph& insert(std::unique_ptr<CompiledGraph> compiled);

  size_t size() const { return entries_.size(); }

 private:
  size_t capacity_;
  std::list<std::unique_ptr<CompiledGraph>> entries_;
};

}  // namespace minfer
