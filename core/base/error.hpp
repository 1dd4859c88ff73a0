// Errors as values: Error, Status and Result<T>, and the one way to write their texts.
// A message says what is wrong, where, the value found and what to do. No exception leaves a library of the project.
#pragma once

#include <cassert>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace minfer {

enum class ErrorCode : int32_t {
  kInvalidArgument = 1,  // the caller's input (file, option, configuration) is wrong
  kUnsupported = 2,      // well formed, but not something this build or device can do
  kNotFound = 3,
  kOutOfMemory = 4,
  kDeviceLost = 5,
  kCancelled = 6,
  kInternal = 7,  // a broken promise inside the project or a plugin
  kIo = 8,
};

std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;

  // The same error with a place put in front: "place: text".
  Error in(std::string_view place) const;
};

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

// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    assert(error_);
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

// A value or an Error. value() may be called only when ok().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    assert(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    assert(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    assert(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    assert(!ok());
    return std::get<1>(state_);
  }
  Status status() const { return ok() ? Status() : Status(error()); }

 private:
  std::variant<T, Error> state_;
};

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
