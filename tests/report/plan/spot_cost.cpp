// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/spot_cost.hpp>

#include <cmath>

namespace frugal_test::plan_spot_cost {

using namespace frugal::plan;
using doctest::Approx;

SpotInputs job() {
  return {.hours = 72,
          .devices = 8,
          .on_demand = PricePerDevice(4),
          .spot = PricePerDevice(1.6),
          .preemptions_per_hour = 0.1,
          .save = Seconds(30),
          .restart = Seconds(300)};
}

TEST_CASE("a rate of 0 takes the time of on demand, and costs the ratio of the prices") {
  SpotInputs in = job();
  in.preemptions_per_hour = 0;
  in.interval = Seconds(1800);
  SpotEstimate const got = estimate(in);
  CHECK(got.hours == Approx(72 + 144 * 30 / 3600.0));
  CHECK(got.lost_hours == 0);
  CHECK(got.preemptions == 0);
  CHECK(got.on_demand.value() == Approx(4 * 8 * got.hours));
  CHECK(got.saved_share() == Approx(0.6));
}

TEST_CASE("a rate of 0.1, by hand: Daly's formula with a lifetime of ten hours") {
  SpotInputs in = job();
  in.interval = Seconds(1800);
  SpotEstimate const got = estimate(in);
  double const time = 36000 * std::exp(300 / 36000.0) * (std::exp(1830 / 36000.0) - 1) * 144;
  CHECK(got.hours == Approx(time / 3600));
  CHECK(got.preemptions == Approx(time / 36000));
  CHECK(got.hours == Approx(72 + got.save_hours + got.lost_hours));
  CHECK(got.cost.value() == Approx(1.6 * 8 * time / 3600));
  CHECK(got.lost_hours > 0);
}

TEST_CASE("the cost grows with the rate, the restart and the save") {
  double last = 0;
  for (double const rate : {0.0, 0.01, 0.1, 0.5, 1.0, 4.0}) {
    SpotInputs in = job();
    in.preemptions_per_hour = rate;
    double const cost = estimate(in).cost.value();
    CHECK(cost > last);
    last = cost;
  }
  SpotInputs slow = job();
  slow.restart = Seconds(1200);
  CHECK(estimate(slow).cost > estimate(job()).cost);
  SpotInputs large = job();
  large.save = Seconds(120);
  CHECK(estimate(large).cost > estimate(job()).cost);
}

TEST_CASE("Daly's interval is cheaper than half or twice of it, and a notice cheaper still") {
  SpotInputs in = job();
  SpotEstimate const best = estimate(in);
  CHECK(best.interval.value() == Approx(daly_interval(30, 36000)));
  for (double const factor : {0.5, 2.0}) {
    in.interval = best.interval * factor;
    CHECK(estimate(in).cost > best.cost);
  }
  SpotInputs warned = job();
  warned.notice = true;
  SpotEstimate const got = estimate(warned);
  CHECK(got.cost < best.cost);
  CHECK(got.lost_hours == Approx(got.preemptions * 330 / 3600));  // a save and a restart each
}

TEST_CASE("at the break-even rate both cost the same") {
  for (bool const notice : {false, true}) {
    SpotInputs in = job();
    in.notice = notice;
    double const rate = break_even_rate(in);
    CHECK(rate > 0.1);
    in.preemptions_per_hour = rate;
    SpotEstimate const got = estimate(in);
    CHECK(got.cost.value() == Approx(got.on_demand.value()).epsilon(1e-6));
    // On demand nothing is lost, so one save at the end is enough.
    CHECK(got.on_demand.value() == Approx(4 * 8 * (72 + 30 / 3600.0)));
  }
}

TEST_CASE("each price bills its own nodes: 12 devices, of which one price is per node of eight") {
  SpotInputs in = job();
  in.devices = 12;
  in.preemptions_per_hour = 0;
  in.save = Seconds(0);
  // $4 a device on demand, and nodes of eight for $12.80 on spot: two of them.
  in.spot_billed = 16;
  SpotEstimate got = estimate(in);
  CHECK(got.on_demand.value() == Approx(4 * 12 * 72));
  CHECK(got.cost.value() == Approx(2 * 12.8 * 72));
  // The reverse: two nodes of $32 on demand, and $1.60 a device on spot.
  in.spot_billed.reset();
  in.billed = 16;
  got = estimate(in);
  CHECK(got.on_demand.value() == Approx(2 * 32 * 72));
  CHECK(got.cost.value() == Approx(1.6 * 12 * 72));
  in.billed = 0;
  CHECK_THROWS_WITH_AS(estimate(in), doctest::Contains("billed devices"), frugal::SettingsError);
}

TEST_CASE("with no save and no restart no rate makes spot dearer") {
  SpotInputs in = job();
  in.save = Seconds(0);
  in.restart = Seconds(0);
  in.notice = true;
  CHECK(std::isinf(break_even_rate(in)));
}

TEST_CASE("free machines have no break-even rate, and dearer ones never pay") {
  SpotInputs in = job();
  in.spot = PricePerDevice(0);
  CHECK(std::isinf(break_even_rate(in)));
  in.spot = PricePerDevice(4);
  CHECK(break_even_rate(in) == 0);
}

TEST_CASE("a job that restarts longer than its machines live never ends") {
  SpotInputs in = job();
  in.notice = true;
  in.preemptions_per_hour = 20;
  SpotEstimate const got = estimate(in);
  CHECK(std::isinf(got.hours));
  CHECK(std::isinf(got.cost.value()));
}

TEST_CASE("an input out of range is an error that names it") {
  SpotInputs in = job();
  in.preemptions_per_hour = -1;
  CHECK_THROWS_WITH_AS(estimate(in), doctest::Contains("preemptions per hour"),
                       frugal::SettingsError);
  in = job();
  in.interval = Seconds(0);
  CHECK_THROWS_AS(estimate(in), frugal::SettingsError);
  in = job();
  in.on_demand = PricePerDevice(0);
  CHECK_THROWS_AS(estimate(in), frugal::SettingsError);
}

}  // namespace frugal_test::plan_spot_cost

namespace frugal_test::plan_checkpoint_cost {

using namespace frugal::plan;
using doctest::Approx;

TEST_CASE("a save of 60 s and a lifetime of 6 h, by hand") {
  CheckpointEstimate const got = estimate(CheckpointInputs{
      .save = Seconds(60), .lifetime = Seconds(21600), .restart = Seconds(300), .hours = 72});
  CHECK(got.young.value() == Approx(std::sqrt(2.0 * 60 * 21600)));  // 1610 s
  // Daly's equation 37: 1609.97 (1 + sqrt(60 / 43200) / 3 + 60 / 43200 / 9) - 60
  CHECK(got.daly.value() == Approx(1570.2).epsilon(1e-4));
  double const time = 21600 * std::exp(300 / 21600.0) *
                      (std::exp((got.daly.value() + 60) / 21600.0) - 1) * 72 * 3600 /
                      got.daly.value();
  CHECK(got.hours == Approx(time / 3600));
  CHECK(got.overhead == Approx(time / 3600 / 72 - 1));
  CHECK(got.save_hours == Approx(72 * 60 / got.daly.value()));
  CHECK(got.hours == Approx(72 + got.save_hours + got.lost_hours));
}

TEST_CASE("without the hours of work there is the share, and no hours") {
  CheckpointInputs in{.save = Seconds(60), .lifetime = Seconds(21600), .hours = 72};
  double const share = estimate(in).overhead;
  in.hours = 0;
  CHECK(estimate(in).overhead == share);
  CHECK(estimate(in).hours == 0);
}

TEST_CASE("an input out of range is an error that names it") {
  CheckpointInputs const in{.save = Seconds(60), .lifetime = Seconds(21600)};
  auto const refused = [](CheckpointInputs const& bad, char const* name) {
    CHECK_THROWS_WITH_AS(estimate(bad), doctest::Contains(name), frugal::SettingsError);
  };
  auto bad = in;
  bad.save = Seconds(0);
  refused(bad, "save");
  bad = in;
  bad.lifetime = Seconds(-1);
  refused(bad, "lifetime");
  bad = in;
  bad.restart = Seconds(std::nan(""));
  refused(bad, "restart");
  bad = in;
  bad.hours = -1;
  refused(bad, "work");
}

}  // namespace frugal_test::plan_checkpoint_cost
