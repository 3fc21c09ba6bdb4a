// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/run/memory_peaks.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace frugal_test::run_memory_peaks {

using frugal::detail::MemoryMeter;

constexpr std::size_t mebibytes = 1 << 20;

/// Touches so many bytes, and gives them back.
void take(std::size_t bytes) {
  std::vector<unsigned char> const block(bytes, 1);
  unsigned char const volatile last = block.back();
  static_cast<void>(last);
}

TEST_CASE("a peak within the measurement is its growth, also when the memory is free again") {
  MemoryMeter const meter(at::kCPU);
  take(300 * mebibytes);
  frugal::MemoryPeaks const peaks = meter.read();
  REQUIRE(peaks.process);
  REQUIRE(peaks.growth);
  CHECK(*peaks.growth >= 250 * mebibytes);
  CHECK(*peaks.growth < 1000 * mebibytes);
  CHECK(*peaks.process > *peaks.growth);
  CHECK_FALSE(peaks.device);
}

TEST_CASE("an earlier, higher peak hides that of the measurement") {
  take(500 * mebibytes);
  MemoryMeter const meter(at::kCPU);
  take(50 * mebibytes);
  frugal::MemoryPeaks const peaks = meter.read();
  CHECK(*peaks.process >= 500 * mebibytes);
  CHECK_FALSE(peaks.growth);
}

}  // namespace frugal_test::run_memory_peaks
