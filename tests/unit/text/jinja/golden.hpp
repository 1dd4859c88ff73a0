// The expected renderings of tests/data/templates, as Jinja2 3.1.6 made them.
#pragma once

#include <nlohmann/json.hpp>

#include "support/support.hpp"
#include "text/chat_template.hpp"
#include "text/jinja/json_value.hpp"

namespace minfer::jinja_test {

using namespace jinja;

using Json = nlohmann::ordered_json;

inline Json golden(const char* name) { return Json::parse(minfer::test::read_file(minfer::test::data_dir() / "templates" / name)); }

// 2024-03-05 09:07:03, a Tuesday: the clock of make_expected.py.
inline std::tm fixed_time() {
  std::tm t{};
  t.tm_year = 124;
  t.tm_mon = 2;
  t.tm_mday = 5;
  t.tm_hour = 9;
  t.tm_min = 7;
  t.tm_sec = 3;
  t.tm_wday = 2;
  t.tm_yday = 64;
  return t;
}

inline Variables variables_of(const Json& object) {
  Variables out;
  for (auto it = object.begin(); it != object.end(); ++it) out.emplace_back(it.key(), *from_json(it.value()));
  return out;
}

inline Result<std::string> render(std::string_view source, const Json& variables, const Limits& limits = {}) {
  MINFER_ASSIGN(const Template parsed, Template::parse(source, "test"));
  return parsed.render(variables_of(variables), fixed_time(), limits);
}

// Empty when `result` is what the reference made of the template; else what differs.
inline std::string difference(const Result<std::string>& result, const Json& expected) {
  if (expected.contains("error")) {
    if (result.ok()) return "is accepted, gives '" + *result + "'";
    const std::string message = expected["error"];
    return result.error().text.find(message) != std::string::npos ? "" : "error lacks '" + message + "': " + result.error().text;
  }
  if (!result.ok()) return "fails: " + result.error().text;
  const std::string out = expected["out"];
  return *result == out ? "" : "gives '" + *result + "'\n  not  '" + out + "'";
}

}  // namespace minfer::jinja_test
