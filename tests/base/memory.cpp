// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/memory.hpp>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::watch_memory {

using namespace frugal::watch;

TEST_CASE("the second number of statm is resident pages") {
  // As proc(5) describes it: size resident shared text lib data dt.
  CHECK(resident_bytes_in("1210 402 340 12 0 116 0\n", 4096) == 402U * 4096U);
  CHECK(resident_bytes_in("1210 402 340 12 0 116 0\n", 65536) == 402U * 65536U);
}

TEST_CASE("a statm that is no statm gives nothing") {
  for (std::string const text :
       {"", "\n", " ", "1210", "1210 ", "1210 x", "a 402 1", "-1 402", "1 -2 3",
        "1 99999999999999999999 3", "1 18446744073709551615 3"}) {
    CAPTURE(text);
    CHECK_FALSE(resident_bytes_in(text, 4096).has_value());
  }
}

TEST_CASE("the peak is the line VmHWM of status, in KiB") {
  CHECK(peak_resident_bytes_in("Name:\tfrugal\nVmPeak:\t   9000 kB\nVmHWM:\t    5128 kB\n") ==
        5128U * 1024U);
  CHECK(peak_resident_bytes_in("VmHWM: 1 kB") == 1024U);
}

TEST_CASE("a process that calls itself VmHWM does not fool the parser") {
  CHECK(peak_resident_bytes_in("Name:\tVmHWM: 77 kB\nVmHWM:\t 3 kB\n") == 3U * 1024U);
  CHECK_FALSE(peak_resident_bytes_in("Name:\tVmHWM: 77 kB\n").has_value());
}

TEST_CASE("a status that is no status gives nothing") {
  for (std::string const text :
       {"", "VmHWM:", "VmHWM:\n5 kB", "VmHWM: 5", "VmHWM: x kB", "VmHWM: 99999999999999999999 kB",
        "VmHWM: 18446744073709551615 kB"}) {
    CAPTURE(text);
    CHECK_FALSE(peak_resident_bytes_in(text).has_value());
  }
}

TEST_CASE("touched memory is resident, and the peak remembers it") {
  auto const before = resident_bytes();
  REQUIRE(before.has_value());
  constexpr std::size_t size = std::size_t{64} << 20U;
  {
    std::vector<char> memory(size, 1);
    auto const during = resident_bytes();
    REQUIRE(during.has_value());
    CHECK(*during > *before + size / 2);
    CHECK(memory[size / 3] == 1);
  }
  auto const peak = peak_resident_bytes();
  REQUIRE(peak.has_value());
  CHECK(*peak > *before + size / 2);
}

}  // namespace frugal_test::watch_memory
