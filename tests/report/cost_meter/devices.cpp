// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/cost_meter/devices.hpp>

#include <array>
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
