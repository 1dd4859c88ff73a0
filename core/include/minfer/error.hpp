// Errors as values: Error, Status and Result<T>. Needs C++17 and the standard library alone.
// Every call that can fail returns one of them; the text of an error is one line for people that says what is wrong, where and what to do.
#ifndef MINFER_ERROR_HPP_
#define MINFER_ERROR_HPP_

#include <cassert>
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

#endif  // MINFER_ERROR_HPP_
