// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/peak.hpp>
#include <frugal/report/plan/prices.hpp>

namespace frugal_test::plan_device_table {

using namespace frugal::plan;

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

}  // namespace frugal_test::plan_device_table

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
