// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/data/arrow/parquet_file.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

using frugal::TimeUnit;
using frugal::detail::int96_fault;
using frugal::detail::Int96Unit;

namespace frugal_test::arrow_int96 {

/// Days since 1970-01-01, and nanoseconds of the day.
parquet::Int96 time_of(std::int64_t days, std::uint64_t nanoseconds) {
  parquet::Int96 value;
  std::memcpy(&value.value[0], &nanoseconds, sizeof nanoseconds);
  value.value[2] = static_cast<std::uint32_t>(days + 2440588);
  return value;
}

bool fits(parquet::Int96 const& value, TimeUnit unit) {
  return int96_fault(value, Int96Unit(unit)) == nullptr;
}

TEST_CASE("nanoseconds of an int64 reach from 1677-09-21 to 2262-04-11, to the nanosecond") {
  // INT64_MAX is day 106751 and 85636.854775807 s; INT64_MIN is day -106752 and 763.145224192 s.
  CHECK(fits(time_of(106751, 85636854775807), TimeUnit::nanosecond));
  CHECK_FALSE(fits(time_of(106751, 85636854775808), TimeUnit::nanosecond));
  CHECK(fits(time_of(-106752, 763145224192), TimeUnit::nanosecond));
  CHECK_FALSE(fits(time_of(-106752, 763145224191), TimeUnit::nanosecond));
  CHECK_FALSE(fits(time_of(120529, 0), TimeUnit::nanosecond));  // 2300-01-01
  CHECK(fits(time_of(120529, 0), TimeUnit::microsecond));
  CHECK(fits(time_of(120529, 0), TimeUnit::second));
}

TEST_CASE("coarser units refuse what is below them") {
  CHECK(fits(time_of(0, 1500000000), TimeUnit::millisecond));
  CHECK_FALSE(fits(time_of(0, 1500000000), TimeUnit::second));
  CHECK_FALSE(fits(time_of(0, 1), TimeUnit::microsecond));
  CHECK(fits(time_of(0, 1), TimeUnit::nanosecond));
}

TEST_CASE("a day of more than 24 hours, and another unit, are refused") {
  CHECK(fits(time_of(0, 86399999999999), TimeUnit::nanosecond));
  CHECK_FALSE(fits(time_of(0, 86400000000000), TimeUnit::nanosecond));
  CHECK_THROWS_AS(Int96Unit{TimeUnit::day}, frugal::SettingsError);
  CHECK_THROWS_AS(Int96Unit{TimeUnit::none}, frugal::SettingsError);
}

}  // namespace frugal_test::arrow_int96
