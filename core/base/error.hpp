// Errors as values (minfer/error.hpp), the one way to write their texts, and the macros that pass them on.
// A message says what is wrong, where, the value found and what to do. No exception leaves a library of the project.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "minfer/error.hpp"

namespace minfer {

// One argument of a message. Implicit, so that calls read like printf.
class FormatArg {
 public:
  FormatArg(std::string_view value) : value_(value) {}
  FormatArg(const std::string& value) : value_(std::string_view(value)) {}
  FormatArg(const char* value) : value_(std::string_view(value)) {}
  FormatArg(bool value) : value_(std::string_view(value ? "true" : "false")) {}
  FormatArg(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  FormatArg(std::signed_integral auto value) : value_(static_cast<int64_t>(value)) {}
  FormatArg(std::unsigned_integral auto value) : value_(static_cast<uint64_t>(value)) {}

  const std::variant<std::string_view, double, int64_t, uint64_t>& value() const { return value_; }

 private:
  std::variant<std::string_view, double, int64_t, uint64_t> value_;
};

// Text in the format language of std::format ({}, {:.2f}, {:08x} ...). A bad pattern yields the pattern itself.
std::string format_text(std::string_view pattern, std::initializer_list<FormatArg> args);

template <class... Args>
std::string text(std::string_view pattern, const Args&... args) {
  return format_text(pattern, {FormatArg(args)...});
}

template <class... Args>
[[nodiscard]] Error make_error(ErrorCode code, std::string_view pattern, const Args&... args) {
  return Error{code, format_text(pattern, {FormatArg(args)...})};
}
template <class... Args>
[[nodiscard]] Error invalid(std::string_view pattern, const Args&... args) {
  return make_error(ErrorCode::kInvalidArgument, pattern, args...);
}
template <class... Args>
[[nodiscard]] Error unsupported(std::string_view pattern, const Args&... args) {
  return make_error(ErrorCode::kUnsupported, pattern, args...);
}
template <class... Args>
[[nodiscard]] Error not_found(std::string_view pattern, const Args&... args) {
  return make_error(ErrorCode::kNotFound, pattern, args...);
}
template <class... Args>
[[nodiscard]] Error io_error(std::string_view pattern, const Args&... args) {
  return make_error(ErrorCode::kIo, pattern, args...);
}
template <class... Args>
[[nodiscard]] Error internal_error(std::string_view pattern, const Args&... args) {
  return make_error(ErrorCode::kInternal, pattern, args...);
}

}  // namespace minfer

#define MINFER_CONCAT_INNER(a, b) a##b
#define MINFER_CONCAT(a, b) MINFER_CONCAT_INNER(a, b)

// Returns the error of a Status expression from the calling function.
#define MINFER_TRY(expression)                                                          \
  do {                                                                                  \
    if (auto try_status_ = (expression); !try_status_.ok()) return try_status_.error(); \
  } while (0)

// MINFER_ASSIGN(auto file, open(path)): the value of a Result, or its error returned from the calling function.
#define MINFER_ASSIGN(target, expression) MINFER_ASSIGN_NAMED(target, expression, MINFER_CONCAT(assign_result_, __LINE__))
#define MINFER_ASSIGN_NAMED(target, expression, name) \
  auto name = (expression);                           \
  if (!name.ok()) return name.error();                \
  target = std::move(name).value()
