// Behaviour asserted from first principles rather than from golden files.
#include <catch2/catch.hpp>
#include <thread>

#include "golden.hpp"

using namespace minfer;
using namespace minfer::jinja;

namespace {

std::string rendered(std::string_view source, const jinja_test::Json& variables = jinja_test::Json::object()) {
  const auto out = jinja_test::render(source, variables);
  if (!out.ok()) FAIL(out.error().text);
  return *out;
}

}  // namespace

TEST_CASE("jinja/template: indented block tags leave no trace in the output", "[jinja]") {
  CHECK(rendered("{% for m in messages %}\n  {% if m.role == 'user' %}\n  [{{ m.content }}]\n  {% endif %}\n{% endfor %}\nEND\n",
                 {{"messages", {{{"role", "user"}, {"content", "a"}}, {{"role", "user"}, {"content", "b"}}}}}) == "  [a]\n  [b]\nEND");
}

TEST_CASE("jinja/template: tojson keeps the order of keys and the characters of the text", "[jinja]") {
  CHECK(rendered("{{ {'z':1,'a':'é<&>','n':none,'t':true,'l':[1,2.5]} | tojson }}") ==
        R"({"z": 1, "a": "é<&>", "n": null, "t": true, "l": [1, 2.5]})");
}

TEST_CASE("jinja/template: operators follow Python", "[jinja]") {
  CHECK(
      rendered(
          "{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 7 / 2 }}|{{ 'ab' ~ 1 ~ none }}|{{ 'abc'[::-1] }}|{{ 'a,b'.split(',') }}|{{ none }}|{{ true }}") ==
      "-4|2|3.5|ab1None|cba|['a', 'b']|None|True");
}

TEST_CASE("jinja/template: namespaces, continue, break and loop.last work together", "[jinja]") {
  CHECK(rendered("{% set ns = namespace(t=0) %}{% for i in range(3) %}{% set ns.t = ns.t + i %}{% endfor %}{{ ns.t }}"
                 "{% for i in [1,2,3,4] %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}"
                 "{{ i if i == 3 else '' }}{% if not loop.last %}{{ ',' if i == 3 }}{% endif %}{% endfor %}") == "33,");
  CHECK(rendered("{% set ns = namespace(t=0) %}{% for i in range(3) %}{% set ns.t = ns.t + i %}{% endfor %}{{ ns.t }}") == "3");
}

TEST_CASE("jinja/template: bytes that are not UTF-8 pass through", "[jinja]") {
  const auto parsed = Template::parse("{{ x }}{{ x | trim }}{{ x[1] }}{{ x | length }}{{ x | upper }}", "x");
  REQUIRE(parsed.ok());
  CHECK(*parsed->render({{"x", Value("a\xff\xfe")}}, jinja_test::fixed_time()) ==
        "a\xff\xfe"
        "a\xff\xfe"
        "\xff"
        "3"
        "A\xff\xfe");
}

TEST_CASE("jinja/template: one template renders on several threads at once", "[jinja]") {
  const auto parsed = Template::parse("{% macro m(k) %}{{ k * 2 }}{% endmacro %}{% for i in range(50) %}{{ m(i + x) }},{% endfor %}", "x");
  REQUIRE(parsed.ok());
  std::string expected[4];
  std::string results[4];
  for (int x = 0; x < 4; ++x) {
    for (int i = 0; i < 50; ++i) expected[x] += std::to_string((i + x) * 2) + ",";
  }
  std::vector<std::thread> threads;
  for (int x = 0; x < 4; ++x) {
    threads.emplace_back([&, x] { results[x] = *parsed->render({{"x", Value(x)}}, jinja_test::fixed_time()); });
  }
  for (auto& thread : threads) thread.join();
  for (int x = 0; x < 4; ++x) CHECK(results[x] == expected[x]);
}

TEST_CASE("jinja/template: large dicts are looked up by key", "[jinja]") {
  CHECK(rendered("{% set d = {} %}{% for i in range(500) %}{% set _ = d.update({'k' ~ i: i}) %}{% endfor %}"
                 "{{ d.k0 }} {{ d['k499'] }} {{ d | length }} {{ d.pop('k3') }} {{ 'k3' in d }} {{ d.k4 }}") == "0 499 500 3 False 4");
}

TEST_CASE("jinja/template: from_json reads what tojson writes", "[jinja]") {
  CHECK(rendered("{{ ('{\"b\": [1, null], \"a\": 2.5}' | from_json).b }}{{ {'z': 1} | tojson | from_json }}") == "[1, None]{'z': 1}");
  CHECK_FALSE(jinja_test::render("{{ '{' | from_json }}", jinja_test::Json::object()).ok());
}

TEST_CASE("jinja/template: JSON beyond what a value can hold is refused", "[jinja]") {
  CHECK_FALSE(parse_json("18446744073709551615").ok());
  CHECK_FALSE(parse_json("{\"a\": }").ok());
  CHECK_FALSE(parse_json(std::string(100000, '[')).ok());
  CHECK(parse_json("9223372036854775807").value().as_int() == INT64_MAX);
}
