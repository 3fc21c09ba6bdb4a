// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/sink/mllog_line.hpp>

#include "support/locales.hpp"

#include <cstdint>
#include <limits>
#include <string>

namespace frugal_test::policy_sink_mllog_line {

using frugal::detail::mllog_line;
using frugal::detail::mllog_object;
using frugal::detail::mllog_value;

TEST_CASE("a line is what Python's mllog writes for the same event") {
  // Its README: mllogger.event(key=..., value=..., metadata=...), without the caller's file.
  CHECK(mllog_line(1556733699974, "POINT_IN_TIME", "eval_accuracy", "0.5",
                   mllog_object({{"epoch_num", std::uint64_t{4}}})) ==
        ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1556733699974, \"event_type\": "
        "\"POINT_IN_TIME\", \"key\": \"eval_accuracy\", \"value\": 0.5, \"metadata\": "
        "{\"epoch_num\": 4}}\n");
}

TEST_CASE("no locale changes a number of a line") {
  frugal_test::support::GroupedLocale const grouped;
  frugal_test::support::CommaLocale const comma;
  CHECK(mllog_line(1556733699974, "POINT_IN_TIME", "seed", mllog_value(std::uint64_t{1234567}),
                   mllog_object({{"loss", 1234.5}})) ==
        ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1556733699974, \"event_type\": "
        "\"POINT_IN_TIME\", \"key\": \"seed\", \"value\": 1234567, \"metadata\": "
        "{\"loss\": 1234.5}}\n");
}

TEST_CASE("values are JSON, whatever is in them") {
  CHECK(mllog_value(std::string("a \"b\"\n")) == "\"a \\\"b\\\"\\n\"");
  CHECK(mllog_value(std::string("\xff")) == "\"\xef\xbf\xbd\"");
  CHECK(mllog_value(std::numeric_limits<double>::quiet_NaN()) == "null");
  CHECK(mllog_value(std::uint64_t{7}) == "7");
  CHECK(mllog_object({}) == "{}");
}

}  // namespace frugal_test::policy_sink_mllog_line
