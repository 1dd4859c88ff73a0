#include "base/nearest_name.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <string>

using minfer::nearest_name;

TEST_CASE("base/nearest_name: finds the name that was meant", "[base]") {
  constexpr std::array<std::string_view, 5> names = {"seed", "temperature", "top_k", "top_p", "n_ctx"};
  CHECK(nearest_name("temprature", names) == "temperature");
  CHECK(nearest_name("TEMPERATURE", names) == "temperature");
  CHECK(nearest_name("topk", names) == "top_k");
  CHECK(nearest_name("n_cxt", names) == "n_ctx");  // a swap counts 1, two replacements would count 2 and be too far
  CHECK(nearest_name("top_q", names) == "top_k");  // the first on a tie
  CHECK_FALSE(nearest_name("threads", names));
  CHECK_FALSE(nearest_name("", {}));
  CHECK_FALSE(nearest_name(std::string(10000, 'a'), names));
}
