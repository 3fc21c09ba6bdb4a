// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/loading/stages.hpp>

#include <doctest/doctest.h>

namespace frugal_test::data_loading_stages {

using frugal::StageSeconds;

TEST_CASE("stages add up, and the slowest is named with its share") {
  StageSeconds seconds{.read = 1, .transform = 2, .collate = 3, .copy = 4};
  seconds += {.read = 10};
  CHECK(seconds.total() == 20);
  CHECK(seconds.read == 11);
  CHECK(seconds.slowest().first == "read");
  CHECK(seconds.slowest().second == doctest::Approx(0.55));
  CHECK(StageSeconds{.copy = 4}.slowest().first == "copy");
}

TEST_CASE("without any time there is no share") { CHECK(StageSeconds{}.slowest().second == 0); }

}  // namespace frugal_test::data_loading_stages
