// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/locales.hpp"

#include <doctest/doctest.h>

#include <frugal/report/sink/record.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace frugal_test::policy_sink_csv_rows {

using frugal::MetricRecord;
using frugal::RecordKind;

std::string cell(std::string_view text) {
  std::string out;
  frugal::detail::append_csv_cell(out, text);
  return out;
}

TEST_CASE("a cell is quoted where RFC 4180 says so") {
  CHECK(cell("plain text") == "plain text");
  CHECK(cell("") == "");
  CHECK(cell("a,b") == "\"a,b\"");
  CHECK(cell("say \"yes\"") == "\"say \"\"yes\"\"\"");
  CHECK(cell("two\r\nlines") == "\"two  lines\"");
  CHECK(cell("caf\xe9") == "caf\xef\xbf\xbd");
}

TEST_CASE("a record is a row for each of its fields, with every digit") {
  MetricRecord record{RecordKind::step, "step", {.epoch = 1, .step = 20, .sample = 640}, 2.5, {}};
  record.add("loss", 0.1)
      .add("seed", std::numeric_limits<std::uint64_t>::max())
      .add("bad", std::numeric_limits<double>::quiet_NaN())
      .add("low", -std::numeric_limits<double>::infinity())
      .add("why", std::string("a, b"));
  CHECK(frugal::detail::csv_rows(record) ==
        "step,20,1,640,2.5,loss,0.1\r\n"
        "step,20,1,640,2.5,seed,18446744073709551615\r\n"
        "step,20,1,640,2.5,bad,nan\r\n"
        "step,20,1,640,2.5,low,-inf\r\n"
        "step,20,1,640,2.5,why,\"a, b\"\r\n");
}

TEST_CASE("no locale changes a number of a row") {
  frugal_test::support::GroupedLocale const grouped;
  frugal_test::support::CommaLocale const comma;
  MetricRecord record{RecordKind::step, "step", {.step = 1234567, .sample = 7654321}, 1234.5, {}};
  record.add("loss", 4321.5).add("seed", std::uint64_t{1000000});
  CHECK(frugal::detail::csv_rows(record) ==
        "step,1234567,0,7654321,1234.5,loss,4321.5\r\n"
        "step,1234567,0,7654321,1234.5,seed,1000000\r\n");
}

TEST_CASE("a record without fields has no row") {
  CHECK(frugal::detail::csv_rows({.name = "validation"}).empty());
}

TEST_CASE("the event of a row is its first cell") {
  CHECK(frugal::detail::csv_event("resume,1,0,0,0,from,x\r\n") == "resume");
  CHECK(frugal::detail::csv_event("") == "");
}

TEST_CASE("a record finds its numbers and its texts by name") {
  MetricRecord record;
  record.add("loss", 0.5).add("count", std::uint64_t{3}).add("by", std::string("StopAfter"));
  CHECK(record.number("loss") == 0.5);
  CHECK(record.number("count") == 3.0);
  CHECK_FALSE(record.number("by"));
  CHECK_FALSE(record.number("other"));
  CHECK(record.text("by") == "StopAfter");
  CHECK(record.text("loss") == "");
}

}  // namespace frugal_test::policy_sink_csv_rows

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
