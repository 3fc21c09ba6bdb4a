// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/devices.hpp>
#include <frugal/error.hpp>

#include <string>

namespace frugal_test::libtorch_devices {

using namespace frugal::detail;
using frugal::DeviceError;

TEST_CASE("an unavailable device is refused with a list of the available ones") {
  CHECK_NOTHROW(require_device(c10::Device(c10::kCPU)));
  c10::Device const beyond(c10::kCUDA, 99);
  try {
    require_device(beyond);
    FAIL("there is no such device");
  } catch (DeviceError const& error) {
    CHECK(error.fault().what == "there is no device cuda:99");
    CHECK(error.fault().where == "Settings::device");
    CHECK(error.fault().why.find("this process has cpu") == 0);
  }
}

TEST_CASE("a text is a device's name, or an error") {
  CHECK(device_from_name("cpu", "FRUGAL_DEVICE").is_cpu());
  CHECK(device_from_name("cuda:99", "FRUGAL_DEVICE") == c10::Device(c10::kCUDA, 99));
  CHECK_THROWS_WITH_AS(device_from_name("gpu please", "FRUGAL_DEVICE"),
                       doctest::Contains("'gpu please' names no device (FRUGAL_DEVICE)"),
                       DeviceError);
  // LibTorch alone makes cuda:0 of it.
  CHECK_THROWS_AS(device_from_name("cuda:256", "FRUGAL_DEVICE"), DeviceError);
  CHECK_THROWS_AS(device_from_name("cuda:200", "FRUGAL_DEVICE"), DeviceError);
}

TEST_CASE("a device keeps its index, and an unavailable one is unchanged") {
  CHECK(with_index(c10::Device(c10::kCPU)) == c10::Device(c10::kCPU));
  CHECK(with_index(c10::Device(c10::kCUDA, 7)) == c10::Device(c10::kCUDA, 7));
  CHECK(with_index(c10::Device(c10::kVE)) == c10::Device(c10::kVE));
}

}  // namespace frugal_test::libtorch_devices
