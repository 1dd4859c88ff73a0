#include "base/error.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

namespace minfer {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kOutOfMemory: return "out of memory";
    case ErrorCode::kDeviceLost: return "device lost";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kInternal: return "internal error";
    case ErrorCode::kIo: return "input/output error";
  }
  return "unknown error";
}

Error Error::in(std::string_view place) const {
  std::string joined(place);
  joined += ": ";
  joined += text;
  return Error{code, std::move(joined)};
}

std::string format_text(std::string_view pattern, std::initializer_list<FormatArg> args) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const FormatArg& arg : args) std::visit([&](const auto& value) { store.push_back(value); }, arg.value());
  try {
    return fmt::vformat(fmt::string_view(pattern.data(), pattern.size()), store);
  } catch (const fmt::format_error&) {
    return std::string(pattern);
  }
}

}  // namespace minfer
