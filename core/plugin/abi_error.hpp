// Errors across the boundary, both ways. Codes have the same numbers on both sides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "minfer/abi/base.h"

namespace minfer::plugin {

// The mi_error of one call. Cheap to make: its text is not cleared.
struct AbiError {
  mi_error error;
  AbiError() {
    error.struct_size = sizeof error;
    error.code = MI_OK;
    error.text[0] = 0;
  }
  mi_error* out() { return &error; }
  // The result of the call: `code` decides, `who` is put in front of the text.
  Status status(int32_t code, std::string_view who) {
    if (code == MI_OK) return {};
    error.text[sizeof error.text - 1] = 0;
    const bool known = code >= MI_INVALID_ARGUMENT && code <= MI_IO;
    const std::string_view said = error.text[0] ? std::string_view(error.text) : "failed without a text";
    return make_error(known ? static_cast<ErrorCode>(code) : ErrorCode::kInternal, "{}: {}", who, one_line(said));
  }
};

// What a host function answers a plugin.
inline int32_t answer(const Error& error, mi_error* out) noexcept {
  if (out && out->struct_size > offsetof(mi_error, text)) {
    const size_t room = std::min<size_t>(out->struct_size - offsetof(mi_error, text), sizeof out->text);
    const size_t size = std::min(error.text.size(), room - 1);
    out->code = static_cast<int32_t>(error.code);
    std::memcpy(out->text, error.text.data(), size);
    out->text[size] = 0;
  }
  return static_cast<int32_t>(error.code);
}
inline int32_t answer(const Status& status, mi_error* out) noexcept { return status.ok() ? MI_OK : answer(status.error(), out); }

// Runs the body of a host function: nothing is thrown into a plugin.
template <class Body>
int32_t host_call(mi_error* out, Body&& body) noexcept {
  try {
    return answer(body(), out);
  } catch (const std::bad_alloc&) {
    return answer(Error{ErrorCode::kOutOfMemory, "out of memory"}, out);
  } catch (const std::exception& e) {
    return answer(Error{ErrorCode::kInternal, e.what()}, out);
  } catch (...) {
    return answer(Error{ErrorCode::kInternal, "exception of an unknown type in the host"}, out);
  }
}

inline std::string_view view(mi_string text) { return text.size ? std::string_view(text.data, text.size) : std::string_view(); }
inline mi_string to_abi(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace minfer::plugin
