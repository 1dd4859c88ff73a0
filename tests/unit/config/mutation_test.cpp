// Damaged configurations: thousands of seeded mutations are read or refused with a place, never worse.
#include <catch2/catch.hpp>
#include <cctype>
#include <string>

#include "config/config.hpp"
#include "support/support.hpp"

using namespace minfer;

namespace {

uint64_t next(uint64_t& state) {  // SplitMix64
  uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::string mutate(std::string text, uint64_t& state) {
  static const std::vector<std::string> kPieces = {"&a ",   "*a",   "<<: ",  "!!str ",  "---\n",
                                                   "...\n", "? ",   "- ",    "[",       "]",
                                                   "{",     "}",    ": ",    "\n",      "\t",
                                                   "\"",    "'",    "|\n",   ">-\n",    "~",
                                                   "null",  "0x1F", "1e999", "-",       "99999999999999999999",
                                                   "%",     "@",    "`",     "\r",      "\xEF\xBB\xBF",
                                                   "\xff",  "# ",   ",",     "\\u0000", "machines: "};
  for (uint64_t n = 1 + next(state) % 4; n > 0; --n) {
    const size_t at = next(state) % (text.size() + 1);
    const size_t length = std::min<size_t>(next(state) % 24, text.size() - at);
    switch (next(state) % 5) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, kPieces[next(state) % kPieces.size()]); break;
      case 2: text.insert(next(state) % (text.size() + 1), text.substr(at, length)); break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(next(state));
        break;
      case 4: text.resize(at); break;
    }
  }
  return text;
}

// True if the message begins with "f.yaml:LINE:COLUMN: " and is one line.
bool has_place(const std::string& message) {
  if (message.rfind("f.yaml:", 0) != 0 || message.find('\n') != std::string::npos) return false;
  size_t at = 7;
  for (const std::string_view end : {":", ": "}) {
    const size_t first = at;
    while (at < message.size() && std::isdigit(static_cast<unsigned char>(message[at]))) ++at;
    if (at == first || message[first] == '0' || message.compare(at, end.size(), end) != 0) return false;
    at += end.size();
  }
  return at < message.size();
}

}  // namespace

TEST_CASE("config: damaged files are read or refused with a place", "[config]") {
  std::vector<std::string> seeds;
  for (const char* name : {"default.yaml", "qwen2.yaml", "cpu-only.yaml"})
    seeds.push_back(test::read_file(std::string(MINFER_CONFIGS_DIR) + "/" + name));
  uint64_t state = 20240607;
  int n_read = 0, n_refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string text = mutate(seeds[static_cast<size_t>(i) % seeds.size()], state);
    auto document = yaml::parse_yaml(text, "f.yaml");
    const auto config = document.ok() ? read_config(*document, "/base", {"gpu-1", "linux"}) : Result<Config>(document.error());
    if (config.ok()) {
      ++n_read;
    } else {
      ++n_refused;
      if (!has_place(config.error().text)) FAIL("no place in: " << config.error().text << "\ntext: " << text);
    }
  }
  CHECK(n_read > 500);
  CHECK(n_refused > 500);
}

TEST_CASE("config: random bytes are refused with a place", "[config]") {
  uint64_t state = 5;
  int n_refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text(next(state) % 200, '\0');
    const bool printable = i % 2 == 0;
    for (char& c : text) c = printable ? " \n-:?[]{},&*!|>'\"%@#ab1"[next(state) % 24] : static_cast<char>(next(state));
    const auto document = yaml::parse_yaml(text, "f.yaml");
    if (document.ok()) continue;
    ++n_refused;
    if (!has_place(document.error().text)) FAIL("no place in: " << document.error().text);
  }
  CHECK(n_refused > 2000);
}
