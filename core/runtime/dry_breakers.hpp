// The sequence breakers of DRY, from text to tokens. Knows no model beyond its tokenizer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace minfer {

// Every way in which tokens may write one of the texts: each token that holds it; and each token that ends with a beginning of it,
// followed by the tokens of the rest. Empty texts are ignored; a text counts up to its 40th byte, a rest up to its 20th token.
Result<std::vector<std::vector<int32_t>>> dry_breakers(const Tokenizer& tokenizer, std::span<const std::string> texts);

}  // namespace minfer
