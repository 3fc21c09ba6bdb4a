// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/checkpoint_cost.hpp>

#include <cmath>

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
