// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/all_reduce.hpp>

namespace frugal_test::plan_all_reduce {

using namespace frugal::plan;
using doctest::Approx;

// 2 x 7/8 x 5.2 GB / 75 GB/s
static_assert(ring_all_reduce(8, Gigabytes(8), GigabytesPerSecond(2)) == Seconds(7));
static_assert(ring_all_reduce(1, Gigabytes(8), GigabytesPerSecond(2)) == Seconds(0));

/// 850 samples/s on one device, 8 devices, 600 Gbit/s, 1.3e9 parameters, 32 samples a device.
constexpr DataParallel fast{.devices = 8,
                            .parameters = 1.3e9,
                            .gradients = GradientFormat::FP32,
                            .bandwidth = in_bytes(GigabitsPerSecond(600)),
                            .samples_per_second = 850,
                            .samples = 32};
/// 250 samples/s, 4 devices, 64 Gbit/s.
constexpr DataParallel slow{.devices = 4,
                            .parameters = 1.3e9,
                            .bandwidth = in_bytes(GigabitsPerSecond(64)),
                            .samples_per_second = 250,
                            .samples = 32};

DataParallel with(DataParallel job, GradientFormat gradients, double overlap) {
  job.gradients = gradients;
  job.overlap = overlap;
  return job;
}

TEST_CASE("the first reference input, by hand: 121 ms of communication after 38 ms of compute") {
  ScalingEstimate const plain = estimate(fast);
  CHECK(plain.compute.value() == Approx(32 / 850.0));
  CHECK(plain.communication.value() == Approx(2 * 7.0 / 8 * 5.2 / 75));
  CHECK(plain.communication.value() == Approx(0.12133).epsilon(1e-4));
  CHECK(plain.efficiency == Approx(0.2368).epsilon(1e-3));
  CHECK(plain.speedup == Approx(8 * 0.2368).epsilon(1e-3));
  CHECK(plain.scaling() == Scaling::poor);
  // 16 bits and an overlap with two thirds of the step more than double it.
  ScalingEstimate const best = estimate(with(fast, GradientFormat::BF16, 2.0 / 3));
  CHECK(best.communication.value() == Approx(0.060667).epsilon(1e-4));
  CHECK(best.exposed.value() == Approx(0.060667 - 2.0 / 3 * 0.037647).epsilon(1e-4));
  CHECK(best.efficiency == Approx(0.514).epsilon(2e-3));
  // Even an overlap with all of it leaves 62 %: 85 to 95 % do not follow from these inputs.
  CHECK(estimate(with(fast, GradientFormat::BF16, 1)).efficiency == Approx(0.6205).epsilon(1e-3));
}

TEST_CASE("the second reference input, by hand: 975 ms of communication after 128 ms") {
  ScalingEstimate const plain = estimate(slow);
  CHECK(plain.compute.value() == Approx(0.128));
  CHECK(plain.communication.value() == Approx(0.975));
  CHECK(plain.efficiency == Approx(0.1160).epsilon(1e-3));
  ScalingEstimate const best = estimate(with(slow, GradientFormat::BF16, 2.0 / 3));
  CHECK(best.efficiency == Approx(0.128 / (0.128 + 0.4875 - 0.085333)).epsilon(1e-4));
}

TEST_CASE("gigabits taken for gigabytes would hide seven eighths of the time") {
  DataParallel wrong = fast;
  wrong.bandwidth = GigabytesPerSecond(600);
  CHECK(estimate(fast).communication / estimate(wrong).communication == Approx(8));
}

TEST_CASE("one device is all efficiency, and communication grows towards twice the bytes") {
  DataParallel job = fast;
  double last = 0;
  for (double devices = 1; devices < 5000; devices *= 2) {
    job.devices = devices;
    ScalingEstimate const got = estimate(job);
    if (devices == 1) {
      CHECK(got.efficiency == 1);
      CHECK(got.communication == Seconds(0));
      CHECK(got.samples_for_good == 0);
    } else {
      CHECK(got.communication.value() > last);
      CHECK(got.communication.value() < 2 * 5.2 / 75);
    }
    last = got.communication.value();
  }
}

TEST_CASE("communication that fits into the overlap costs nothing, and earns nothing") {
  DataParallel job = with(fast, GradientFormat::BF16, 1);
  job.samples = 320;
  ScalingEstimate const got = estimate(job);
  CHECK(got.communication < got.compute);
  CHECK(got.exposed == Seconds(0));
  CHECK(got.efficiency == 1);
}

TEST_CASE("the advised number of samples is exactly 80 %, with and without overlap") {
  for (double const overlap : {0.0, 0.5, 2.0 / 3, 1.0}) {
    DataParallel job = with(fast, GradientFormat::BF16, overlap);
    job.samples = estimate(job).samples_for_good;
    CHECK(estimate(job).efficiency == Approx(0.8));
    job.samples *= 1.001;
    CHECK(estimate(job).scaling() == Scaling::good);
  }
}

TEST_CASE("the thresholds are 80 % and 60 %, and each verdict has its advice") {
  CHECK(ScalingEstimate{.efficiency = 0.8}.scaling() == Scaling::good);
  CHECK(ScalingEstimate{.efficiency = 0.799}.scaling() == Scaling::fair);
  CHECK(ScalingEstimate{.efficiency = 0.6}.scaling() == Scaling::fair);
  CHECK(ScalingEstimate{.efficiency = 0.599}.scaling() == Scaling::poor);
  auto const said = [](DataParallel const& job) { return advice(job, estimate(job)); };
  CHECK(said(fast).starts_with("Overlap"));
  CHECK(said(with(fast, GradientFormat::FP32, 0.5)).starts_with("Send gradients in BF16"));
  CHECK(said(with(fast, GradientFormat::BF16, 0.5)).starts_with("Accumulate more micro-batches, "));
  CHECK(said(with(fast, GradientFormat::BF16, 1)).starts_with("Accumulate more micro-batches for"));
  DataParallel one = fast;
  one.devices = 1;
  CHECK(said(one).starts_with("Add devices"));
}

TEST_CASE("an input out of range is an error") {
  CHECK_THROWS_AS(ring_all_reduce(0, Gigabytes(1), GigabytesPerSecond(1)), frugal::SettingsError);
  CHECK_THROWS_AS(ring_all_reduce(2, Gigabytes(1), GigabytesPerSecond(0)), frugal::SettingsError);
  DataParallel job = fast;
  job.overlap = 1.1;
  CHECK_THROWS_AS(estimate(job), frugal::SettingsError);
  job = fast;
  job.samples_per_second = 0;
  CHECK_THROWS_AS(estimate(job), frugal::SettingsError);
}

}  // namespace frugal_test::plan_all_reduce
