// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/report/cost_meter/rate.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace frugal_test::cost_meter_devices {

using frugal::detail::metered_gpus;
using Names = std::vector<std::string>;
using Uuids = std::vector<std::array<unsigned char, 16>>;

Uuids two() {
  Uuids uuids(2);
  uuids[0][0] = 0xa0;
  uuids[1][0] = 0xb1;
  return uuids;
}
constexpr char const* first = "GPU-a0000000-0000-0000-0000-000000000000";
constexpr char const* second = "GPU-b1000000-0000-0000-0000-000000000000";

TEST_CASE("the GPUs of the process count, by CUDA's UUIDs, and one that is billed alone") {
  CHECK(metered_gpus(two(), "7,8", {}) == Names{first, second});
  CHECK(metered_gpus(two(), "7,8", 1) == Names{second});
}

TEST_CASE("without CUDA's UUIDs the list of visible devices counts, and else the whole machine") {
  CHECK(metered_gpus({}, "3,1", {}) == Names{"3", "1"});
  CHECK(metered_gpus({}, "3,1", 1) == Names{"1"});
  CHECK_FALSE(metered_gpus({}, nullptr, {}));
  CHECK(metered_gpus({}, nullptr, 2) == Names{"2"});
}

TEST_CASE("an index that no list has is NVML's own") {
  CHECK(metered_gpus(two(), nullptr, 5) == Names{"5"});
}

}  // namespace frugal_test::cost_meter_devices

namespace frugal_test::policy_cost_meter_rate {

using frugal::SettingsError;
using frugal::detail::Rate;
using frugal::detail::rate_of;
using frugal::detail::RateQuestion;
using frugal::plan::PricePerDevice;
using frugal::plan::PricePerNode;
using support::TemporaryFolder;

/// One offer for an H100 per device, and two for an A100 per node.
std::filesystem::path prices_in(TemporaryFolder const& folder) {
  std::filesystem::path const path = folder / "prices.json";
  std::ofstream(path) << R"({"format":"frugal prices","version":1,"currency":"USD","prices":[
    {"name":"h","device":"H100","per":"device","on_demand":2.5,"as_of":"2026-11"},
    {"name":"a","device":"A100 40GB","devices":8,"per":"node","on_demand":30,"spot":9},
    {"name":"b","device":"A100 40GB","devices":4,"per":"node","on_demand":16}]})";
  return path;
}

TEST_CASE("a price per device is multiplied by devices, and one per node by nodes") {
  Rate const device = rate_of({.price = PricePerDevice(2.5), .devices = 4});
  CHECK(*device.per_hour == 10);
  CHECK(device.per == "device");
  CHECK(device.devices == 4);
  Rate const node = rate_of({.price = PricePerNode(20), .devices = 8, .nodes = 2});
  CHECK(*node.per_hour == 40);
  CHECK(node.per == "node");
  CHECK(node.nodes == 2);
  CHECK(node.knows_devices);
  CHECK_FALSE(rate_of({.price = PricePerNode(20), .nodes = 2}).knows_devices);
  CHECK(*rate_of({.price = PricePerNode(20), .other_per_hour = 0.5}).per_hour == 20.5);
  CHECK_THROWS_WITH_AS(rate_of({.price = PricePerDevice(2.5), .nodes = 3}),
                       doctest::Contains("nodes is 3, and the price is one per device"),
                       SettingsError);
}

TEST_CASE("devices at a price per node bill the nodes that they need") {
  TemporaryFolder const folder;
  auto const prices = prices_in(folder);
  Rate const two = rate_of({.devices = 9, .prices = prices, .offer = "a"});
  CHECK(*two.per_hour == 60);
  CHECK(two.nodes == 2);
  CHECK(two.devices == 16);
  CHECK(*rate_of({.devices = 8, .prices = prices, .offer = "a"}).per_hour == 30);
  CHECK(*rate_of({.devices = 8, .nodes = 3, .prices = prices, .offer = "a"}).per_hour == 90);
}

TEST_CASE("an offer is found by its name, on demand and spot") {
  TemporaryFolder const folder;
  auto const prices = prices_in(folder);
  Rate const spot = rate_of({.nodes = 2, .prices = prices, .offer = "a", .spot = true});
  CHECK(*spot.per_hour == 18);
  CHECK(spot.devices == 16);
  CHECK(spot.per == "node");
  CHECK(spot.source == "a, spot");
  CHECK(spot.warning.empty());
  CHECK(*rate_of({.devices = 2, .prices = prices, .offer = "h"}).per_hour == 5);
  CHECK_THROWS_AS(rate_of({.prices = prices, .offer = "b", .spot = true}), SettingsError);
  CHECK_THROWS_WITH_AS(rate_of({.prices = prices, .offer = "c"}),
                       doctest::Contains("no price has that name"), SettingsError);
}

TEST_CASE("an example of the built-in table is taken by name alone, with a warning") {
  Rate const example = rate_of({.offer = "p4d.24xlarge"});
  CHECK(*example.per_hour == 32.77);
  CHECK(example.warning.find("a dated example") != std::string::npos);
  Rate const unknown = rate_of({.model = "NVIDIA H100 80GB HBM3"});
  CHECK_FALSE(unknown.per_hour);
  CHECK(unknown.source == "unknown");
}

TEST_CASE("a price file gives the price of the device if it has one offer for it") {
  TemporaryFolder const folder;
  auto const prices = prices_in(folder);
  Rate const one = rate_of({.prices = prices, .model = "NVIDIA H100 80GB HBM3"});
  CHECK(*one.per_hour == 2.5);
  CHECK(one.source == "h, on demand, as of 2026-11");
  Rate const two = rate_of({.prices = prices, .model = "NVIDIA A100-SXM4-40GB"});
  CHECK_FALSE(two.per_hour);
  CHECK(two.warning.find("has 2 offers") != std::string::npos);
  CHECK_FALSE(rate_of({.prices = prices, .model = ""}).per_hour);
}

TEST_CASE("the environment has the price of a node, behind what the program says") {
  CHECK(*rate_of({.nodes = 2, .environment = "2.5"}).per_hour == 5);
  CHECK(rate_of({.environment = "2.5"}).source == "FRUGAL_PRICE_PER_HOUR");
  CHECK(*rate_of({.price = PricePerNode(7), .environment = "2.5"}).per_hour == 7);
  CHECK_FALSE(rate_of({.environment = ""}).per_hour);
  for (char const* const bad : {"2,5", "$3", "-1", "nan", "inf", " 2"}) {
    CHECK_THROWS_AS(rate_of({.environment = bad}), SettingsError);
  }
}

TEST_CASE("a price table is in dollars, and is not shown in another currency") {
  CHECK(*rate_of({.price = PricePerNode(7), .currency = "EUR"}).per_hour == 7);
  CHECK_THROWS_AS(rate_of({.offer = "p4d.24xlarge", .currency = "EUR"}), SettingsError);
}

}  // namespace frugal_test::policy_cost_meter_rate
