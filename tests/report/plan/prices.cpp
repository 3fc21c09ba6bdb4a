// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/peak.hpp>
#include <frugal/report/plan/prices.hpp>

namespace frugal_test::plan_prices {

using namespace frugal::plan;

TEST_CASE("a node's price is that of its devices, whichever way it is listed") {
  Price const node(PricePerNode(32.0), 8);
  Price const device(PricePerDevice(4.0), 8);
  CHECK(node.is_per_node());
  CHECK_FALSE(device.is_per_node());
  CHECK(node.per_device() == device.per_device());
  CHECK(node.per_node() == device.per_node());
}

TEST_CASE("a node of 0 devices is an error") {
  CHECK_THROWS_WITH_AS(Price(PricePerNode(32.0), 0), doctest::Contains("devices of a node"),
                       frugal::SettingsError);
  CHECK_THROWS_AS(Price(PricePerDevice(4.0), 0), frugal::SettingsError);
}

TEST_CASE("a price per node bills whole nodes, and one per device bills devices") {
  Price const node(PricePerNode(32.0), 8);
  CHECK(node.billed(8) == 8);
  CHECK(node.billed(9) == 16);
  CHECK(node.billed(1) == 8);
  CHECK(Price(PricePerDevice(4.0), 8).billed(9) == 9);
}

TEST_CASE("peaks are those of watch, and every built-in offer is an example for a known device") {
  PriceTable const table = PriceTable::built_in();
  for (Device const& each : table.devices().devices()) {
    CHECK(each.memory > Gigabytes(0));
    CHECK(each.bandwidth > GigabytesPerSecond(0));
    for (auto const& [format, peak] : each.peaks) {
      CHECK(peak == frugal::watch::peak_flops(each.name, format));
    }
  }
  for (Offer const& each : table.offers()) {
    CHECK(each.example);
    CHECK(table.devices().find(each.device) != nullptr);
    CHECK(each.source.find("to be replaced") != std::string::npos);
    CHECK_FALSE(each.as_of.empty());
  }
  CHECK(table.offers_of("NVIDIA H100 80GB HBM3").empty());  // nobody asked for an example
}

TEST_CASE("a name that is not there is an error with the near ones") {
  PriceTable const table = PriceTable::built_in();
  CHECK(table.offer("P4D.24xlarge").devices == 8);
  CHECK_THROWS_WITH_AS(table.offer("p4d.24xlage"),
                       "frugal: no price has that name (p4d.24xlage): near it are p4d.24xlarge. "
                       "Name one of these, or add it to a price file.",
                       frugal::SettingsError);
}

}  // namespace frugal_test::plan_prices
