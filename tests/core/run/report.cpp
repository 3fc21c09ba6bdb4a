// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <frugal/core/run/report.hpp>

namespace frugal_test::run_report {

frugal::Report example() {
  frugal::Metrics early, late;
  early.set("loss", 0.9);
  late.set("loss", 0.5);
  late.set("accuracy", 0.75);
  return {.epochs = 2,
          .steps = 10,
          .samples = 80,
          .seconds = 1.5,
          .train_loss = 0.25,
          .stopped_by = "EarlyStop",
          .validations = {{1, 5, early}, {2, 10, late}},
          .warnings = {"use less"}};
}

TEST_CASE("a report prints its counts, its last validation, what stopped it and its advice") {
  std::ostringstream text;
  text << example();
  CHECK(text.str() ==
        "2 epochs, 10 steps, 80 samples in 1.5 s; training loss 0.25, validation loss 0.5, "
        "validation accuracy 0.75; stopped by EarlyStop\nwarning: use less");
}

TEST_CASE("a report is one line of JSON, with null for what there is not") {
  frugal::Report report = example();
  report.memory.process = 1 << 20;
  report.options = {{"lr", "0.1"}};
  report.warnings = {"two\nlines"};
  report.train_loss = std::numeric_limits<double>::quiet_NaN();
  auto const json = nlohmann::json::parse(frugal::json_line(report));
  CHECK(frugal::json_line(report).find('\n') == std::string::npos);
  CHECK(json.at("steps") == 10);
  CHECK(json.at("train_loss").is_null());
  CHECK(json.at("validation").at("step") == 10);
  CHECK(json.at("validation").at("metrics").at("accuracy") == 0.75);
  CHECK(json.at("stopped_by") == "EarlyStop");
  CHECK(json.at("exit_code") == 0);
  CHECK(json.at("resumed").is_null());
  CHECK(json.at("memory").at("process") == 1 << 20);
  CHECK(json.at("memory").at("device").is_null());
  CHECK(json.at("options").at("lr") == "0.1");
  CHECK(json.at("warnings").at(0) == "two\nlines");

  report.resumed = frugal::Resumed{.from = "there", .step = 7, .damaged = {"a", "b"}};
  report.validations.clear();
  report.preempted = true;
  auto const other = nlohmann::json::parse(frugal::json_line(report));
  CHECK(other.at("resumed").at("step") == 7);
  CHECK(other.at("resumed").at("damaged").size() == 2);
  CHECK(other.at("validation").is_null());
  CHECK(other.at("exit_code") == 75);
}

TEST_CASE("a report without validation prints none") {
  std::ostringstream text;
  frugal::Report report;
  report.epochs = 1;
  report.steps = 2;
  report.samples = 3;
  report.seconds = 4;
  report.train_loss = 5;
  text << report;
  CHECK(text.str() == "1 epoch, 2 steps, 3 samples in 4 s; training loss 5");
}

TEST_CASE("a resumed run's report has the time and the samples of the whole run") {
  frugal::Report report = example();
  report.seconds_before = 6.5;
  report.resumed = frugal::Resumed{
      .from = "there", .step = 7, .steps_repeated = 2, .seconds_lost = 0.25, .damaged = {}};
  CHECK(report.total_seconds() == 8.0);
  std::ostringstream text;
  text << report;
  CHECK(text.str() ==
        "2 epochs, 10 steps, 80 samples in 8 s; training loss 0.25, validation loss 0.5, "
        "validation accuracy 0.75; resumed from step 7, at 6.5 s, 2 steps repeated, 0.25 s of "
        "training lost; stopped by EarlyStop\nwarning: use less");
}

TEST_CASE("a run ended with Ctrl-C has the exit code that shells use for it") {
  frugal::Report report = example();
  report.interrupted = true;
  CHECK(report.exit_code() == 130);
  report.preempted = true;
  CHECK(report.exit_code() == 130);
}

TEST_CASE("an end that could not be saved is reported, and has its own exit code") {
  frugal::Report report = example();
  CHECK(report.exit_code() == 0);
  report.preempted = true;
  CHECK(report.exit_code() == 75);
  report.unsaved = "the disk is full";
  CHECK(report.exit_code() == 74);
  report.interrupted = true;
  CHECK(report.exit_code() == 74);
  report.interrupted = report.preempted = false;
  CHECK(report.exit_code() == 74);
  std::ostringstream text;
  text << report;
  CHECK(text.str().find("; the end is not saved: the disk is full\n") != std::string::npos);
}

TEST_CASE("the last validation's metrics are available, or an error says why there are none") {
  CHECK(example().last()["accuracy"] == 0.75);
  CHECK_THROWS_AS(frugal::Report{}.last(), frugal::MetricError);
}

}  // namespace frugal_test::run_report

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
