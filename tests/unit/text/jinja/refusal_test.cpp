// What the engine refuses, and that it says so with the template, the line and the construct; every limit; damaged templates.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "golden.hpp"

using namespace minfer;
using namespace minfer::jinja;

namespace {

std::string error_of(std::string_view source, const Limits& limits = {}) {
  const auto out = jinja_test::render(source, jinja_test::Json::object(), limits);
  return out.ok() ? "no error: " + *out : out.error().text;
}

}  // namespace

TEST_CASE("jinja/refusal: an unsupported construct is refused by name when parsed", "[jinja]") {
  for (const char* tag : {"include", "import", "from", "extends", "block", "autoescape", "do", "trans", "debug"}) {
    const auto parsed = Template::parse(std::string("a\n{% if false %}\n{% ") + tag + " 'x' %}\n{% endif %}", "m");
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code == ErrorCode::kUnsupported);
    CHECK(parsed.error().text == std::string("template 'm', line 3: tag '") + tag + "' is not supported");
  }
  CHECK(error_of("\n\n{{ 1 | foo }}") == "template 'test', line 3: filter 'foo' is not supported");
  CHECK(error_of("{{ 1 is foo }}") == "template 'test', line 1: test 'foo' is not supported");
  CHECK(error_of("{{ ['a'] | map('foo') }}") == "template 'test', line 1: filter 'map': filter 'foo' is not supported");
  CHECK(error_of("{{ 'a'.encode() }}").find("not supported") != std::string::npos);
}

TEST_CASE("jinja/refusal: errors name the line they stand on", "[jinja]") {
  CHECK(error_of("a\nb {{ x.y }}") == "template 'test', line 2: 'x' is undefined");
  CHECK(error_of("{# a\n\n #}{% if 1 %}\n{{ 1 +\n 'a' }}{% endif %}") ==
        "template 'test', line 4: unsupported operand types for +: 'int' and 'str'");
  CHECK(error_of("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}") == "template 'test', line 2: division by zero");
  CHECK(error_of("\n{{ raise_exception('no system role here') }}") == "template 'test', line 2: no system role here");
  CHECK(error_of("\r\n\r\n{% if x %}") == "template 'test', line 3: block 'if' is never closed");
  CHECK(error_of("{% for x in [1] %}\n{% endif %}") == "template 'test', line 2: tag 'endif' closes nothing");
  CHECK(error_of("\n{{ 'abc }}") == "template 'test', line 2: string is never closed with '");
  CHECK(error_of("\n\n{{ 1 1 }}") == "template 'test', line 3: expected '}}', found a number");
  CHECK(error_of("{{ nothing() }}") == "template 'test', line 1: 'nothing' is undefined");
}

TEST_CASE("jinja/refusal: an error is one line whatever the template holds", "[jinja]") {
  for (const char* source : {"{{ \x01 }}", "{{ \x1b }}", "{{ raise_exception('a\nb') }}", "{{ {}['\r'].x }}", "{{ '\n' | nofilter }}"}) {
    const std::string error = error_of(source);
    INFO(error);
    CHECK_FALSE(error.empty());
    CHECK(std::none_of(error.begin(), error.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
  }
}

TEST_CASE("jinja/refusal: a template that never ends stops at the limit of steps", "[jinja]") {
  Limits limits;
  limits.max_steps = 50'000;
  CHECK(error_of("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}", limits).find("max_steps") !=
        std::string::npos);
  CHECK(error_of("{{ [1] * 100000 }}", limits).find("max_steps") != std::string::npos);
  CHECK(error_of("{% set l = [1] %}{% for a in range(20) %}{% set _ = l.extend(l) %}{% endfor %}", limits).find("max_steps") !=
        std::string::npos);
}

TEST_CASE("jinja/refusal: a text that grows without end stops at the limit of bytes", "[jinja]") {
  Limits limits;
  limits.max_output_bytes = 10'000;
  const std::string doubling = "{% set ns = namespace(s='x') %}{% for a in range(24) %}{% set ns.s = ";
  for (const char* grow :
       {"ns.s + ns.s", "ns.s ~ ns.s", "ns.s * 2", "[ns.s, ns.s] | join", "ns.s | replace('x', 'xx')", "'{}{}'.format(ns.s, ns.s)",
        "'%s%s' % (ns.s, ns.s)", "[ns.s, ns.s] | string", "[ns.s, ns.s] | tojson", "ns.s.join(['a', 'b', 'c'])"}) {
    INFO(grow);
    CHECK(error_of(doubling + grow + " %}{% endfor %}", limits).find("max_output_bytes") != std::string::npos);
  }
  CHECK(error_of("{% for a in range(999) %}aaaaaaaaaaaaaaaaaaaa{% endfor %}", limits).find("max_output_bytes") != std::string::npos);
  CHECK(error_of("{{ 'a' | center(9999999999999) }}").find("max_output_bytes") != std::string::npos);
  CHECK(error_of("{{ 'a' * 9999999999999 }}").find("max_output_bytes") != std::string::npos);
}

TEST_CASE("jinja/refusal: recursion without end stops at the limit of depth", "[jinja]") {
  for (const char* source : {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
                             "{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}",
                             "{% set l = [] %}{% set m = [] %}{% set _ = l.append(l) %}{% set _ = m.append(m) %}{{ l == m }}",
                             "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
                             "{% set ns = namespace(x=1) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
                             "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"}) {
    INFO(source);
    CHECK(error_of(source).find("max_depth") != std::string::npos);
  }
}

TEST_CASE("jinja/refusal: deep values and self-containing values are destroyed without overflow or leak", "[jinja]") {
  CHECK(error_of("{% set ns = namespace(x=1) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}ok") == "no error: ok");
  CHECK(error_of("{% set ns = namespace(x=1) %}{% for i in range(90000) %}{% set ns.x = {'k': ns.x} %}{% endfor %}ok") == "no error: ok");
  CHECK(error_of("{% set ns = namespace(x=1) %}{% for i in range(20000) %}{% set ns.x = namespace(y=ns.x) %}{% endfor %}ok") ==
        "no error: ok");
  CHECK(error_of("{% set d = {} %}{% set _ = d.update({'d': d}) %}{% set c = cycler(1) %}{% macro m() %}{% endmacro %}ok") ==
        "no error: ok");
}

TEST_CASE("jinja/refusal: deep nesting of the source is an error and no stack overflow", "[jinja]") {
  const auto repeated = [](std::string_view unit, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += unit;
    return out;
  };
  for (const auto& [open, close] : std::initializer_list<std::pair<const char*, const char*>>{{"(", ")"},
                                                                                              {"[", "]"},
                                                                                              {"{1:", "}"},
                                                                                              {"-", ""},
                                                                                              {"not ", ""},
                                                                                              {"f(", ")"},
                                                                                              {"1 if 1 else ", ""},
                                                                                              {"1 + ", ""},
                                                                                              {"1 ** ", ""},
                                                                                              {"x[", "]"}}) {
    INFO(open);
    CHECK(error_of("{{ " + repeated(open, 50) + "1" + repeated(close, 50) + " }}").find("deeper") == std::string::npos);
    CHECK(error_of("{{ " + repeated(open, 100000) + "1" + repeated(close, 100000) + " }}").find("nested deeper than 200 levels") !=
          std::string::npos);
  }
  CHECK(error_of("{{ 1" + repeated("|int", 100000) + " }}").find("deeper") != std::string::npos);
  CHECK(error_of("{{ x" + repeated(".x", 100000) + " }}").find("deeper") != std::string::npos);
  CHECK(error_of(repeated("{% if 1 %}", 100000)).find("blocks nested deeper") != std::string::npos);
  CHECK(error_of(repeated("{% if 0 %}", 1) + repeated("{% elif 0 %}", 20000) + "{% endif %}ok") == "no error: ok");
  CHECK(error_of("{% set " + repeated("(", 100000) + "a" + repeated(")", 100000) + " = 1 %}").find("deeper") != std::string::npos);
}

TEST_CASE("jinja/refusal: range is limited as in the sandbox", "[jinja]") {
  CHECK(error_of("{{ range(100001) | length }}").find("max_range") != std::string::npos);
  CHECK(error_of("{{ range(100000) | length }}") == "no error: 100000");
}

TEST_CASE("jinja/refusal: integers beyond 64 bits are errors", "[jinja]") {
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ 2 ** 64 }}", "{{ 9223372036854775807 * 2 }}", "{{ 99999999999999999999 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}", "{{ -(-9223372036854775807 - 1) }}", "{{ '99999999999999999999' | int }}"}) {
    INFO(source);
    CHECK(error_of(source).find("64 bits") != std::string::npos);
  }
  CHECK(error_of("{{ (-9223372036854775807 - 1) % -1 }}") == "no error: 0");
}

TEST_CASE("jinja/refusal: damaged templates end in a text or an error", "[jinja]") {
  std::vector<std::string> sources;
  for (const auto& entry : std::filesystem::directory_iterator(minfer::test::data_dir() / "templates")) {
    if (entry.path().extension() == ".jinja") sources.push_back(minfer::test::read_file(entry.path()));
  }
  std::sort(sources.begin(), sources.end());
  REQUIRE(sources.size() >= 24);
  const auto chats = jinja_test::golden("chats.json");
  const auto variables = jinja_test::variables_of(chats[0]["conversations"][7]);
  Limits limits;
  limits.max_steps = 100'000;
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::string_view pieces[] = {"{%",   "%}",    "{{",     "}}",  "{#",  "#}",     "(",    ")",      "[",     "]",    "{",      "}",
                                     "-",    "|",     ".",      "'",   "\"",  "\\",     " if ", " else ", " for ", " in ", "endfor", " is ",
                                     "not ", "loop.", "[::-1]", "** ", "raw", "endraw", "\n",   "\xff",   "1e999", ":",    ",",      "="};
  int rendered = 0;
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string s = sources[below(sources.size())];
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(s.size());
      switch (below(4)) {
        case 0: s.erase(at, 1 + below(12)); break;
        case 1: s.insert(at, pieces[below(std::size(pieces))]); break;
        case 2: s.insert(at, s.substr(below(s.size()), 1 + below(40))); break;
        default: s[at] = static_cast<char>(below(256));
      }
      if (s.empty()) s.assign(1, '{');
    }
    const auto parsed = Template::parse(s, "damaged");
    const auto out = parsed.ok() ? parsed->render(variables, jinja_test::fixed_time(), limits) : Result<std::string>(parsed.error());
    ++(out.ok() ? rendered : refused);
    if (!out.ok() && out.error().text.find("template 'damaged', line ") != 0) FAIL_CHECK(out.error().text);
  }
  CHECK(rendered > 100);
  CHECK(refused > 100);
}
