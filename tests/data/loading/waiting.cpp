// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/loading/waiting.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace frugal_test::data_waiting {

using frugal::LoaderReport;
using frugal::StageSeconds;
using frugal::detail::WaitMeter;
using namespace std::chrono_literals;

TEST_CASE("stages add up, and the slowest is named with its share") {
  StageSeconds seconds{.read = 1, .transform = 2, .collate = 3, .copy = 4};
  seconds += {.read = 10};
  CHECK(seconds.total() == 20);
  CHECK(seconds.read == 11);
  CHECK(seconds.slowest().first == "read");
  CHECK(seconds.slowest().second == doctest::Approx(0.55));
  CHECK(StageSeconds{.copy = 4}.slowest().first == "copy");
}

TEST_CASE("without any time there is no share") { CHECK(StageSeconds{}.slowest().second == 0); }

WaitMeter::Time at(std::chrono::milliseconds since_start) {
  return WaitMeter::Time{} + since_start;
}

LoaderReport report_of(WaitMeter const& meter) {
  LoaderReport report;
  meter.fill(report);
  return report;
}

TEST_CASE("a step lasts from batch to batch, the first from the seek") {
  WaitMeter meter;
  meter.begin(at(1000ms));
  meter.step(at(1010ms), at(1040ms));  // 40 ms, of which 30 waiting
  meter.step(at(1100ms), at(1110ms));  // 70 ms, of which 10 waiting
  LoaderReport const report = report_of(meter);
  CHECK(report.steps == 2);
  CHECK(report.seconds == doctest::Approx(0.110));
  CHECK(report.waiting_seconds == doctest::Approx(0.040));
  CHECK(report.waiting() == doctest::Approx(40.0 / 110));
  CHECK(report.utilisation() == doctest::Approx(70.0 / 110));
}

TEST_CASE("what follows the end of an epoch, such as a validation, is no step") {
  WaitMeter meter;
  meter.begin(at(0ms));
  meter.step(at(5ms), at(10ms));
  meter.end();
  meter.begin(at(5000ms));
  meter.step(at(5000ms), at(5010ms));
  CHECK(report_of(meter).seconds == doctest::Approx(0.020));
}

TEST_CASE("without a seek the first step begins with its request") {
  WaitMeter meter;
  meter.step(at(700ms), at(710ms));
  CHECK(report_of(meter).seconds == doctest::Approx(0.010));
  CHECK(report_of(meter).waiting() == 1);
}

TEST_CASE("a loader that gave nothing was not waited for") {
  CHECK(LoaderReport{}.waiting() == 0);
  CHECK(LoaderReport{}.warning().empty());
}

LoaderReport starved() {
  return {.steps = 10,
          .seconds = 10,
          .waiting_seconds = 3.1,
          .stages = {.read = 1, .transform = 8, .collate = 0.5, .copy = 0.5},
          .workers = 4,
          .cores = 4};
}

TEST_CASE("below 70% utilisation the advice is to fix the data first, and names the slow stage") {
  CHECK(starved().warning() ==
        "training waits for data 31% of the time: fix the data first; the slow stage is transform "
        "(80% of the workers' time), so transform the set once and store the result, or make the "
        "transform cheaper");
}

TEST_CASE("from 70% utilisation on, and in the first ten steps, there is no advice") {
  LoaderReport report = starved();
  report.waiting_seconds = 3;
  CHECK(report.warning().empty());
  report = starved();
  report.steps = 9;
  CHECK(report.warning().empty());
}

TEST_CASE("a source without stages says for itself why it is slow") {
  frugal::LoaderReport report{.steps = 10, .seconds = 10, .waiting_seconds = 4};
  CHECK(report.warning("it is") ==
        "training waits for data 40% of the time: fix the data first; it is");
  report.waiting_seconds = 3;
  CHECK(report.warning("it is").empty());
}

TEST_CASE("free cores are mentioned") {
  LoaderReport report = starved();
  report.cores = 16;
  CHECK(report.warning().ends_with(
      ", or use more workers (LoaderSettings::workers is 4, and there are 16 cores)"));
}

TEST_CASE("each stage has its own advice") {
  for (auto const& [stages, text] :
       {std::pair{frugal::StageSeconds{.read = 1}, "the slow stage is read (100%"},
        {{.collate = 1}, "the slow stage is collate (100%"},
        {{.read = 1, .copy = 3}, "the slow stage is copy (75%"}}) {
    LoaderReport report = starved();
    report.stages = stages;
    CAPTURE(report.warning());
    CHECK(report.warning().find(text) != std::string::npos);
  }
}

}  // namespace frugal_test::data_waiting
