// The tokens of a template. Knows nothing of what they mean together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace minfer::jinja {

enum class TokenKind : uint8_t {
  kText,  // template text outside of tags, whitespace control done
  kBlockBegin,
  kBlockEnd,
  kOutputBegin,
  kOutputEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 0;
  std::string text;  // name, operator, text, or the string's value
  int64_t integer = 0;
  double number = 0;
};

// What an error message calls the token.
std::string describe(const Token& token);

// Errors begin with "line N: ".
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace minfer::jinja
