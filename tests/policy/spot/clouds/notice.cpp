// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include <doctest/doctest.h>

#include <frugal/policy/spot/clouds.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace frugal_test::cluster_notice_time {

using frugal::detail::time_of_rfc1123;
using frugal::detail::time_of_rfc3339;

// Seconds since 1970, from `date --date=... +%s`.
std::chrono::system_clock::time_point at(long long seconds) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

TEST_CASE("AWS's time is read to the second, in UTC") {
  CHECK(time_of_rfc3339("2017-09-18T08:22:00Z") == at(1505722920));
  CHECK(time_of_rfc3339("2024-02-29T23:59:59Z") == at(1709251199));
}

TEST_CASE("Azure's time is read to the second, in GMT") {
  CHECK(time_of_rfc1123("Mon, 19 Sep 2016 18:29:47 GMT") == at(1474309787));
  CHECK(time_of_rfc1123("Sun, 01 Dec 2024 00:00:00 UTC") == at(1733011200));
}

TEST_CASE("a wrong day of the week does not matter: Azure's own examples have one") {
  CHECK(time_of_rfc1123("Mon, 11 Apr 2026 22:26:58 GMT") == at(1775946418));
}

TEST_CASE("invalid dates have no time") {
  for (char const* const text :
       {"2023-02-29T08:22:00Z", "2017-13-18T08:22:00Z", "2017-00-18T08:22:00Z",
        "2017-09-31T08:22:00Z", "2017-09-00T08:22:00Z", "2017-09-18T24:22:00Z",
        "2017-09-18T08:60:00Z", "2017-09-18T08:22:60Z", "0000-09-18T08:22:00Z"}) {
    CAPTURE(text);
    CHECK_FALSE(time_of_rfc3339(text));
  }
  for (char const* const text :
       {"Wed, 30 Feb 2022 10:00:00 GMT", "Mon, 00 Sep 2016 18:29:47 GMT",
        "Mon, 19 Sep 2016 25:29:47 GMT", "Mon, 19 Sep 2016 18:61:47 GMT"}) {
    CAPTURE(text);
    CHECK_FALSE(time_of_rfc1123(text));
  }
}

TEST_CASE("a year beyond the clock is no time, and does not overflow it") {
  CHECK_FALSE(time_of_rfc3339("9999-12-31T23:59:59Z"));
  CHECK_FALSE(time_of_rfc1123("Fri, 31 Dec 9999 23:59:59 GMT"));
  CHECK_FALSE(time_of_rfc3339("1601-01-01T00:00:00Z"));
}

TEST_CASE("other forms have no time: an offset, a fraction, blanks, no zone, signs") {
  for (char const* const text :
       {"", "Z", "now", "2017-09-18T08:22:00+02:00", "2017-09-18T08:22:00.5Z",
        "2017-09-18 08:22:00Z", "2017-09-18T08:22:00", " 2017-09-18T08:22:00Z",
        "2017-09-18T08:22:0-Z", "-017-09-18T08:22:00Z", "2017-09-18T+8:22:00Z",
        "2017-9-018T08:22:00Z"}) {
    CAPTURE(text);
    CHECK_FALSE(time_of_rfc3339(text));
  }
  for (char const* const text :
       {"", "Mon, 19 Sep 2016 18:29:47 CET", "19 Sep 2016 18:29:47 GMT",
        "Mon, 19 Spe 2016 18:29:47 GMT", "Mon, -9 Sep 2016 18:29:47 GMT",
        "Mon, 19-Sep-2016 18:29:47 GMT", "Monday, 19-Sep-16 18:29:47 GMT"}) {
    CAPTURE(text);
    CHECK_FALSE(time_of_rfc1123(text));
  }
}

TEST_CASE("no truncated time is read past its end") {
  std::string const aws = "2017-09-18T08:22:00Z";
  std::string const azure = "Mon, 19 Sep 2016 18:29:47 GMT";
  for (std::size_t i = 0; i < aws.size(); ++i) CHECK_FALSE(time_of_rfc3339(aws.substr(0, i)));
  for (std::size_t i = 0; i < azure.size(); ++i) CHECK_FALSE(time_of_rfc1123(azure.substr(0, i)));
}

}  // namespace frugal_test::cluster_notice_time
