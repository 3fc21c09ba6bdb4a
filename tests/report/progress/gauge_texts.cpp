// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/progress/gauge_texts.hpp>

#include <string>
#include <utility>
#include <vector>

namespace frugal_test::watch_gauge_texts {

TEST_CASE("small sums of money show their cents, and an unknown price hours") {
  auto const texts = [](std::vector<std::pair<std::string, double>> const& gauges) {
    return frugal::watch::detail::gauge_texts(gauges);
  };
  using Texts = std::vector<std::string>;
  CHECK(texts({{"dollars", 0.0123}}) == Texts{"$0.012"});
  CHECK(texts({{"dollars", 0.0123}, {"hours", 0.5}}) == Texts{"$0.012"});
  CHECK(texts({{"dollars_projected", 37748}}) == Texts{"$37748.00 projected"});
  CHECK(texts({{"hours", 0.51}, {"hours_projected", 12}}) == Texts{"0.51 h of 12 h"});
  CHECK(texts({{"kilowatt_hours", 1.25}, {"kg_co2", 0.4}, {"queue", 7}, {"memory_bytes", 9}}) ==
        Texts{"1.25 kWh", "0.4 kg CO2", "queue 7"});
  CHECK(texts({{"kilowatt_hours", 1.25}, {"kilowatt_hours_projected", 30}}) ==
        Texts{"1.25 kWh of 30 kWh"});
  CHECK(texts({{"device_memory_bytes", 9}}).empty());  // shown as memory
}

}  // namespace frugal_test::watch_gauge_texts
