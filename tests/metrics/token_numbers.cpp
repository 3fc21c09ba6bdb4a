// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/metrics/token_numbers.hpp>

#include <string>
#include <vector>

namespace frugal_test::metrics_token_numbers {

using frugal::detail::TokenNumbers;

TEST_CASE("equal tokens of several texts have equal numbers, and integers are their own") {
  TokenNumbers ids;
  std::vector<std::string> const first{"a", "b", "a"}, second{"c", "b"};
  CHECK(ids(first) == TokenNumbers::Ids{0, 1, 0});
  CHECK(ids(second) == TokenNumbers::Ids{2, 1});
  CHECK(TokenNumbers()(std::vector<short>{7, -1}) == TokenNumbers::Ids{7, -1});
}

}  // namespace frugal_test::metrics_token_numbers
