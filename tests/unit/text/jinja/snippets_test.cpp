// A thousand small templates give what Jinja2 gives, byte for byte, or fail where it fails.
#include <catch2/catch.hpp>

#include "golden.hpp"

using namespace minfer;
using namespace minfer::jinja;

TEST_CASE("jinja/snippets: expressions, statements and whitespace are rendered as by Jinja2", "[jinja]") {
  const auto rows = jinja_test::golden("snippets.json");
  const auto& context = rows[0]["context"];
  REQUIRE(rows.size() > 1000);
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::string source = rows[i]["in"];
    const std::string wrong = jinja_test::difference(jinja_test::render(source, context), rows[i]);
    if (!wrong.empty()) FAIL_CHECK(source << "\n  " << wrong);
  }
  CHECK(rows.size() > 1000);
}
