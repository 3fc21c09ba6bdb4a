// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/run_log.hpp>

#include "support/files.hpp"

#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>

#include <sys/stat.h>

namespace frugal_test::html_run_log {

using frugal::html::LogLine;
using frugal::html::RunLog;
using frugal::html::RunLogReader;

RunLog read(std::string_view text) {
  RunLogReader reader;
  reader.feed(text);
  return reader.finish();
}

constexpr std::string_view begin =
    R"({"event":"begin","step":0,"epoch":0,"samples":0,"seconds":0.1,"parameters":27,"seed":3})"
    "\n";
std::string step(int at, std::string_view more) {
  return R"({"event":"step","step":)" + std::to_string(at) + R"(,"epoch":0,"samples":)" +
         std::to_string(32 * at) + R"(,"seconds":)" + std::to_string(at) + ".5" +
         std::string(more) + "}\n";
}

TEST_CASE("the lines of Log become series and events") {
  RunLog const log = read(
      std::string(begin) + step(10, R"(,"loss":0.7,"lr_factor":1,"dollars":0.5)") +
      R"({"event":"validation","step":10,"epoch":0,"samples":320,"seconds":11,"loss":0.6,"accuracy":0.9})"
      "\n" +
      step(20, R"(,"loss":0.5,"lr_factor":0.5,"dollars":1)") +
      R"({"event":"epoch","step":20,"epoch":1,"samples":640,"seconds":21,"loss":0.61})"
      "\n"
      R"({"event":"end","step":20,"epoch":1,"samples":640,"seconds":22,"stopped_by":"EarlyStop"})"
      "\n");
  CHECK(log.lines == 6);
  CHECK(log.damaged == 0);
  CHECK_FALSE(log.cut_off);
  CHECK(log.steps == 20);
  CHECK(log.epochs == 1);
  CHECK(log.samples == 640);
  CHECK(log.seconds == 22);
  REQUIRE(log.find("loss") != nullptr);
  CHECK(log.find("loss")->count() == 2);
  CHECK(log.find("loss")->last().value == 0.5);
  CHECK(log.find("epoch/loss")->last().value == 0.61);
  CHECK(log.find("validation/accuracy")->last().value == 0.9);
  CHECK(log.find("validation/accuracy")->last().dollars == 0.5);  // what was spent by then
  CHECK(log.find("lr_factor")->last().dollars == 1);
  CHECK(log.find("samples") == nullptr);
  REQUIRE(log.event("begin") != nullptr);
  CHECK(log.event("begin")->number("seed") == 3);
  CHECK(log.event("end")->text("stopped_by") == "EarlyStop");
}

TEST_CASE("pieces of any size give the same log") {
  std::string const text = std::string(begin) + step(1, R"(,"loss":3)") + step(2, R"(,"loss":2)");
  for (std::size_t const size : {1U, 2U, 7U, 64U}) {
    RunLogReader reader;
    for (std::size_t at = 0; at < text.size(); at += size) {
      reader.feed(std::string_view(text).substr(at, size));
    }
    RunLog const log = reader.finish();
    CHECK(log.lines == 3);
    CHECK(log.damaged == 0);
    CHECK(log.find("loss")->count() == 2);
  }
}

TEST_CASE("a line that is cut off is counted and named, and the others are read") {
  std::string const whole = std::string(begin) + step(1, R"(,"loss":3)");
  RunLog const log = read(whole + R"({"event":"step","step":2,"epo)");
  CHECK(log.cut_off);
  CHECK(log.damaged == 1);
  REQUIRE(log.faults.size() == 1);
  CHECK(log.faults[0].line == 3);
  CHECK(log.find("loss")->count() == 1);
  // A whole line without its end is no damage.
  CHECK_FALSE(read(whole.substr(0, whole.size() - 1)).cut_off);
}

TEST_CASE("damaged lines are counted, and the first are named with the reason") {
  std::string text = std::string(begin);
  text += "not JSON\n";
  text += "{\"event\":\"step\",\"step\":1,\"seconds\":1,\"loss\":[1]}\n";
  text += "{\"step\":1,\"seconds\":1}\n";
  text += "{\"event\":\"step\",\"seconds\":1}\n";
  text += "{\"event\":\"step\",\"step\":-1,\"seconds\":1}\n";
  text += "{\"event\":\"step\",\"step\":1}\n";
  text += "[]\n7\n\"x\"\nnull\n";
  text += std::string("{\"event\":\"st\0ep\"}\n", 18);
  text += "{\"event\":\"\xff\",\"step\":1,\"seconds\":1}\n";
  text += std::string(100'000, '[') + "\n";
  text += step(4, R"(,"loss":1)");
  RunLog const log = read(text);
  CHECK(log.damaged == 13);
  CHECK(log.lines == 15);
  REQUIRE(log.faults.size() == 13);
  CHECK(log.faults[0].line == 2);
  CHECK(log.faults[0].why.find("at byte") != std::string::npos);
  CHECK(log.faults[2].why == "it has no \"event\"");
  CHECK(log.faults[3].why == "it has no \"step\"");
  CHECK(log.faults[4].why == "it has no \"step\"");
  CHECK(log.faults[5].why == "it has no \"seconds\"");
  CHECK(log.find("loss")->count() == 1);
}

TEST_CASE("null, huge numbers and strings among the values are no damage") {
  RunLog const log =
      read(std::string(begin) + step(1, R"(,"loss":null)") + step(2, R"(,"loss":1e300)") +
           step(3, R"(,"loss":"NaN")") + step(4, R"(,"loss":0.5)"));
  CHECK(log.damaged == 0);
  CHECK(log.find("loss")->count() == 1);
  CHECK(log.find("loss")->not_finite() == 2);
}

TEST_CASE("a million names, events and endless lines take bounded memory") {
  RunLogReader reader;
  for (int i = 0; i < 5000; ++i) {
    reader.feed(step(i, ",\"name" + std::to_string(i) + "\":1"));
    reader.feed(R"({"event":"mine","step":1,"seconds":1})"
                "\n");
    reader.feed("damaged\n");
  }
  std::string const piece(1 << 16, 'x');
  for (int i = 0; i < 100; ++i) reader.feed(piece);
  reader.feed("\n");
  reader.feed(step(9, R"(,"name0":2)"));
  RunLog const log = reader.finish();
  CHECK(log.series.size() == RunLogReader::most_series);
  CHECK(log.series_left_out == 5000 - RunLogReader::most_series);
  CHECK(log.events.size() == RunLogReader::most_events);
  CHECK(log.events_left_out == 5000 - RunLogReader::most_events);
  CHECK(log.damaged == 5001);
  CHECK(log.faults.size() == RunLogReader::most_faults);
  CHECK(log.find("name0")->last().value == 2);
}

std::string event(std::string_view name, int at, std::string_view more = "") {
  return R"({"event":")" + std::string(name) + R"(","step":)" + std::to_string(at) +
         R"(,"seconds":)" + std::to_string(at) + ".6" + std::string(more) + "}\n";
}

TEST_CASE("cost and end are those of the run, not of an earlier fit that it went on from") {
  std::string const first = std::string(begin) + step(250, R"(,"dollars":2)") +
                            event("cost", 250, R"(,"dollars":2.5)") + event("end", 250);
  RunLog const ended = read(first + event("resume", 250, R"(,"seconds_lost":0)"));
  CHECK(ended.event("end") != nullptr);
  REQUIRE(ended.event("cost") != nullptr);
  CHECK(ended.event("cost")->number("dollars") == 2.5);
  RunLog const goes_on =
      read(first + event("resume", 250, R"(,"seconds_lost":3)") + step(260, R"(,"dollars":2.6)"));
  CHECK(goes_on.event("end") == nullptr);
  CHECK(goes_on.event("cost") == nullptr);
  CHECK(goes_on.resumes == 1);
  CHECK(goes_on.seconds_lost == 3);
  RunLog const back =
      read(std::string(begin) + step(9, "") + event("preempted", 9) + event("resume", 9));
  CHECK(back.event("preempted") == nullptr);
}

TEST_CASE("the end and the resumes are known, however many events came before") {
  RunLogReader reader;
  reader.feed(begin);
  for (int i = 1; i <= 1200; ++i) {
    reader.feed(step(i, ""));
    reader.feed(event("audit", i));
  }
  reader.feed(event("resume", 1200, R"(,"seconds_lost":4)"));
  reader.feed(event("cost", 1200, R"(,"dollars":7)"));
  reader.feed(event("end", 1200));
  RunLog const log = reader.finish();
  CHECK(log.events_left_out > 0);
  CHECK(log.event("end") != nullptr);
  REQUIRE(log.event("cost") != nullptr);
  CHECK(log.event("cost")->number("dollars") == 7);
  CHECK(log.event("audit")->step == 1200);
  CHECK(log.seconds_lost == 4);
}

TEST_CASE("of several runs in one file the last one is shown") {
  RunLog const log = read(std::string(begin) + step(50, R"(,"loss":9)") + std::string(begin) +
                          step(10, R"(,"loss":1)"));
  CHECK(log.starts == 2);
  CHECK(log.steps == 10);
  CHECK(log.find("loss")->count() == 1);
}

TEST_CASE("a folder without a log, and a log without a line, are refused with their path") {
  support::TemporaryFolder const folder;
  auto const path = folder / "metrics.jsonl";
  auto const why = [&] {
    try {
      static_cast<void>(frugal::html::read_run_log(path));
    } catch (frugal::DataError const& error) {
      CHECK(error.fault().where == path.string());
      CHECK_FALSE(error.fault().fix.empty());
      return error.fault().why;
    }
    return std::string("read");
  };
  CHECK(why() == "there is no such file");
  std::ofstream(path).put('\n').flush();
  CHECK(why() == "it has only blank lines");
  std::ofstream(path, std::ios::trunc) << std::flush;
  CHECK(why() == "it is empty");
  std::ofstream(path) << "a,b\n1,2\n" << std::flush;
  CHECK(why().starts_with("all of its 2 lines are damaged; line 1: "));
  std::filesystem::remove(path);
  // Opening a pipe would wait for a writer.
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(why() == "it is no regular file");
}

}  // namespace frugal_test::html_run_log
