// Where a library's work ends in its caller's hands, memory that ran out becomes an error like any other.
#pragma once

#include <new>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"

namespace minfer {

// Runs body, which returns a Status or a Result, and answers kOutOfMemory where an allocation failed.
template <class Body>
auto catch_out_of_memory(Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {     // also std::bad_array_new_length
  } catch (const std::length_error&) {  // a container that would exceed the address space
  }
  return Error{ErrorCode::kOutOfMemory, "out of memory"};  // short enough to need no allocation
}

}  // namespace minfer
