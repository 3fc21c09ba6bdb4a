// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_report.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

namespace frugal_test::data_cache_cache_report {

using frugal::CacheReport;

TEST_CASE("sizes have the unit that suits them") {
  CacheReport report{.samples = 9, .cached = 3, .bytes_before = 1023, .bytes_after = 1024};
  CHECK(report.text() == "3 of 9 samples: 1023 B before the transform, 1.0 KiB after it");
  report.bytes_before = 0;
  report.bytes_after = std::numeric_limits<std::uint64_t>::max();
  CHECK(report.text() == "3 of 9 samples: 0 B before the transform, 16.0 EiB after it");
}

TEST_CASE("inputs of unknown size are left out") {
  CHECK(CacheReport{.samples = 1, .bytes_after = 3 << 20}.text() ==
        "0 of 1 samples: 3.0 MiB after the transform");
}

}  // namespace frugal_test::data_cache_cache_report
