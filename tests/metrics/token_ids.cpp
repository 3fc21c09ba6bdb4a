// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/token_ids.hpp>

#include <string>
#include <vector>

namespace frugal_test::metrics_token_ids {

using frugal::detail::TokenIds;

TEST_CASE("equal tokens of several texts have equal numbers, and integers are their own") {
  TokenIds ids;
  std::vector<std::string> const first{"a", "b", "a"}, second{"c", "b"};
  CHECK(ids(first) == TokenIds::Ids{0, 1, 0});
  CHECK(ids(second) == TokenIds::Ids{2, 1});
  CHECK(TokenIds()(std::vector<short>{7, -1}) == TokenIds::Ids{7, -1});
}

}  // namespace frugal_test::metrics_token_ids
