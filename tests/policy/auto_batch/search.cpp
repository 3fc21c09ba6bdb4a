// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/auto_batch.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace frugal_test::policy_auto_batch_search {

TEST_CASE("the search finds the largest number that fits, with few calls and no repetition") {
  for (std::int64_t most = 1; most <= 130; ++most) {
    for (std::int64_t limit = 0; limit <= most; ++limit) {
      std::vector<std::int64_t> asked;
      auto const found = frugal::detail::largest_that_fits(most, [&](std::int64_t number) {
        CHECK(number >= 1);
        CHECK(number <= most);
        asked.push_back(number);
        return number <= limit;
      });
      CHECK(found == limit);
      std::size_t const log = std::bit_width(static_cast<std::uint64_t>(most));
      CHECK(asked.size() <= 2 * log + 2);
      std::sort(asked.begin(), asked.end());
      CHECK(std::adjacent_find(asked.begin(), asked.end()) == asked.end());
    }
  }
}

}  // namespace frugal_test::policy_auto_batch_search
