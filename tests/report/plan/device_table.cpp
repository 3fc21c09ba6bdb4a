// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/plan/device_table.hpp>

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
