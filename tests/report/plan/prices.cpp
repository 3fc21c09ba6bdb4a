// SPDX-License-Identifier: Apache-2.0
// torch-free

#include <doctest/doctest.h>

#include <string>

#include <frugal/error.hpp>
#include <frugal/report/plan/peak.hpp>
#include <frugal/report/plan/prices.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

namespace frugal_test::plan_prices {

using namespace frugal::plan;
using namespace frugal_test::support;

std::string found(char const* model) {
  static DeviceTable const table = DeviceTable::built_in();
  Device const* const device = table.find(model);
  return device == nullptr ? "none" : device->name;
}

TEST_CASE("what a driver says finds the device, and never one that is only a part of the word") {
  CHECK(found("NVIDIA A100-SXM4-80GB") == "A100 80GB");
  CHECK(found("NVIDIA A100-PCIE-40GB") == "A100 40GB");
  CHECK(found("NVIDIA H100 80GB HBM3") == "H100");
  CHECK(found("NVIDIA H100 PCIe") == "H100 PCIe");
  CHECK(found("NVIDIA H100 NVL") == "H100 NVL");
  CHECK(found("NVIDIA A100 80GB PCIe") == "A100 80GB PCIe");
  CHECK(found("NVIDIA L40S") == "L40S");
  CHECK(found("NVIDIA L4") == "L4");
  CHECK(found("NVIDIA A10G") == "A10G");
  CHECK(found("Tesla V100-SXM2-16GB") == "V100-SXM2 16GB");
  CHECK(found("tesla t4") == "Tesla T4");
  CHECK(found("NVIDIA H200") == "H200");
  CHECK(found("NVIDIA H200 NVL") == "H200 NVL");
  CHECK(found("NVIDIA A1000") == "none");
  CHECK(found("A100") == "none");  // of which there are two
  CHECK(found("") == "none");
}

TEST_CASE("a part of a device is not the device, unless a user describes that part") {
  CHECK(found("NVIDIA H100 80GB HBM3 MIG 1g.10gb") == "none");
  CHECK(found("NVIDIA A100-SXM4-80GB MIG 3g.40gb") == "none");
  DeviceTable table = DeviceTable::built_in();
  table.put({.name = "H100 MIG 1g.10gb", .memory = Gigabytes(10)});
  CHECK(table.at("NVIDIA H100 80GB HBM3 MIG 1g.10gb").name == "H100 MIG 1g.10gb");
  CHECK(table.at("NVIDIA H100 80GB HBM3").name == "H100");
}

TEST_CASE("an unknown device is an error that names the near ones") {
  DeviceTable const table = DeviceTable::built_in();
  CHECK_THROWS_WITH_AS(
      table.at("A100"),
      "frugal: the device is not in the table (A100): near it are A100 80GB PCIe, A100 80GB, "
      "A100 40GB. Name one of these, or describe the device in a price "
      "file.",
      frugal::SettingsError);
  CHECK_THROWS_WITH_AS(table.at("abacus of wood"),
                       doctest::Contains("known are H200 NVL, H200, H100 PCIe,"),
                       frugal::SettingsError);
}

TEST_CASE("an unknown format is an error that lists the known ones") {
  DeviceTable const table = DeviceTable::built_in();
  CHECK(table.at("A100 80GB").peak("BF16") == 312e12);
  CHECK(table.at("A100 80GB").peak("INT8") == 624e12);
  CHECK(table.at("H100").peak("FP8") == 1979e12);
  CHECK_THROWS_WITH_AS(table.at("A100 80GB").peak("FP64"),
                       doctest::Contains("known are BF16, FP16, FP32, INT8, TF32"),
                       frugal::SettingsError);
  CHECK_THROWS_WITH_AS(table.at("A10G").peak("FP32"),
                       doctest::Contains("the table has no peak of this device"),
                       frugal::SettingsError);
}

TEST_CASE("a user's device replaces the one of its name, and a new one comes first") {
  DeviceTable table = DeviceTable::built_in();
  std::size_t const before = table.devices().size();
  table.put({.name = "h100", .peaks = {{"FP8", 1979e12}}, .memory = Gigabytes(94)});
  CHECK(table.devices().size() == before);
  CHECK(table.at("H100").memory == Gigabytes(94));
  CHECK(table.at("H100").peak("FP8") == 1979e12);
  table.put({.name = "H300 NVL", .memory = Gigabytes(94)});
  CHECK(table.devices().size() == before + 1);
  CHECK(table.at("NVIDIA H300 NVL").name == "H300 NVL");
}

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

constexpr char const* complete = R"({
  "format": "frugal prices",
  "version": 1,
  "currency": "USD",
  "devices": [
    {"name": "H100 NVL", "memory_gb": 94, "bandwidth_gb_per_s": 3900,
     "tflops": {"FP32": 60, "BF16": 835}}
  ],
  "prices": [
    {"name": "own rack", "device": "H100 NVL", "per": "device", "on_demand": 1.25},
    {"name": "a node", "device": "A100 80GB", "devices": 8, "per": "node", "on_demand": 20,
     "spot": 7.5, "as_of": "2026-11-01", "source": "an offer"}
  ]
})";

/// The complete file with one part replaced.
std::string with(std::string const& part, std::string const& other) {
  std::string text = complete;
  text.replace(text.find(part), part.size(), other);
  return text;
}

void refuses(std::string const& text, std::string const& place, std::string const& why) {
  try {
    parse_prices(text, "prices.json");
    FAIL_CHECK("not refused: " << why);
  } catch (frugal::SettingsError const& error) {
    CAPTURE(error.fault().why);
    CHECK(error.fault().where == "prices.json:" + place);
    CHECK(error.fault().why.find(why) != std::string::npos);
    CHECK_FALSE(error.fault().fix.empty());
  }
}

TEST_CASE("a price file gives devices and prices, and replaces all examples") {
  PriceTable const table = parse_prices(complete, "prices.json");
  CHECK(table.devices().at("H100 NVL").peak("BF16") == 835e12);
  CHECK(table.devices().at("H100").memory == Gigabytes(80));  // built in
  REQUIRE(table.offers().size() == 2);
  Offer const& rack = table.offer("own rack");
  CHECK_FALSE(rack.on_demand.is_per_node());
  CHECK(rack.on_demand.per_device() == PricePerDevice(1.25));
  CHECK_FALSE(rack.spot.has_value());
  Offer const& node = table.offer("a node");
  CHECK(node.on_demand.per_node() == PricePerNode(20));
  CHECK(node.on_demand.per_device() == PricePerDevice(2.5));
  REQUIRE(node.spot.has_value());
  CHECK(node.spot->per_node() == PricePerNode(7.5));
  CHECK(node.as_of == "2026-11-01");
  CHECK_FALSE(node.example);
  REQUIRE(table.offers_of("NVIDIA A100-SXM4-80GB").size() == 1);
  CHECK(table.offers_of("NVIDIA A100-SXM4-80GB")[0]->name == "a node");
  CHECK(table.offers_of("the CPU").empty());
}

TEST_CASE("a price of 0 is a price, and a file of no devices is one") {
  std::string const free = R"({"format":"frugal prices","version":1,"prices":
    [{"name":"own","device":"L4","per":"device","on_demand":0}]})";
  CHECK(parse_prices(free, "x").offer("own").on_demand.per_device() == PricePerDevice(0));
}

TEST_CASE("what is not JSON is refused with line and column") {
  refuses("", "1:1", "it is not JSON");
  refuses("{\n  \"format\": ,", "2:13", "it is not JSON");
  refuses(std::string(complete) + " x", "14:3", "it is not JSON");
  refuses("[1]", "1:1", "an object { } goes here");
  refuses("{\"\xff\": 1}", "1:3", "it is not");
  refuses(std::string(100, '['), "1:66", "nests deeper than 64");
}

TEST_CASE("a column counts characters, not bytes") {
  refuses(with("\"own rack\", ", "\"r\u00e4ck\", \"color\": 1, "), "10:31",
          "\"color\" is not known");
}

TEST_CASE("a wrong value is refused at its place") {
  refuses(with("\"on_demand\": 20", "\"on_demand\": -20"), "11:89", "\"on_demand\" is negative");
  refuses(with("7.5", "-7.5"), "12:14", "\"spot\" is negative");
  refuses(with("7.5", "\"7.5\""), "12:14", "\"spot\" is not a number");
  refuses(with("7.5", "1e999"), "12:14", "Number too big");
  refuses(with("\"version\": 1", "\"version\": 2"), "3:14", "this reads version 1");
  refuses(with("\"USD\"", "\"EUR\""), "4:15", "prices are in USD");
  refuses(with("\"per\": \"node\"", "\"per\": \"rack\""), "11:68",
          "neither \"device\" nor \"node\"");
  refuses(with("\"devices\": 8", "\"devices\": 0"), "11:58", "not a whole number from 1 to 4096");
  refuses(with("\"devices\": 8", "\"devices\": 1.5"), "11:58", "not a whole number");
  refuses(with("\"devices\": 8, ", ""), "11:5", "\"devices\" is missing");
  refuses(with("94", "0"), "6:39", "\"memory_gb\" is not above 0");
  refuses(with("835", "-1"), "7:37", "\"BF16\" is not above 0");
  refuses(with("\"a node\"", "\"\""), "11:14", "\"name\" is empty");
}

TEST_CASE("what no device and no price is would overflow, and is refused at its place") {
  refuses(with("835", "1e300"), "7:37", "\"BF16\" is above 1e9");
  refuses(with("3900", "1e300"), "6:65", "\"bandwidth_gb_per_s\" is above 1e9");
  refuses(with("7.5", "1e308"), "12:14", "\"spot\" is above 1e9");
  refuses(with("\"devices\": 8", "\"devices\": 1e300"), "11:58", "from 1 to 4096");
}

TEST_CASE("a byte-order mark is skipped, and moves no column") {
  std::string const mark = "\xEF\xBB\xBF";
  CHECK(parse_prices(mark + complete, "prices.json").offers().size() == 2);
  refuses(mark + "[1]", "1:1", "an object { } goes here");
  refuses("{}" + mark, "1:3", "it is not JSON");
}

TEST_CASE("what is unknown, missing or there twice is refused at its place") {
  refuses(with("A100 80GB", "A100"), "11:34", "near it are A100 80GB PCIe, A100 80GB");
  refuses(with("\"spot\"", "\"spt\""), "12:13", "\"spt\" is not known; near it are spot");
  refuses(with("\"on_demand\": 20,", ""), "11:5", "\"on_demand\" is missing");
  refuses(with("frugal prices", "prices"), "2:13", "does not say");
  refuses(with("own rack", "a node"), "11:5", "\"a node\" is there twice");
  refuses(with("own rack", "A NODE"), "11:5", "\"a node\" is there twice");
  refuses(with("\"spot\": 7.5", "\"spot\": 7, \"spot\": 8"), "12:25", "\"spot\" is there twice");
}

TEST_CASE("a file that cannot be read is a StoreError") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(read_prices(folder / "none.json"), frugal::StoreError);
  CHECK_THROWS_AS(read_prices(folder.path()), frugal::StoreError);
  write_text(folder / "prices.json", complete);
  CHECK(read_prices(folder / "prices.json").offers().size() == 2);
}

}  // namespace frugal_test::plan_prices
