// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/burn_rate.hpp>
#include <frugal/report/cost_meter.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace frugal_test::policy_burn_rate {

using namespace support;
using namespace support::dying_runs;
using frugal::BurnRate;
using frugal::CostMeter;
using frugal::Every;
using frugal::PerDay;
using frugal::PerHour;
using frugal::Stop;
using frugal::Usd;
using frugal::plan::PricePerDevice;
using Optimizer = frugal::Optimize<frugal::AdamW>;

double now = 0;
double fake_clock() { return now; }

/// The steps of "budget" events that end the run.
using Told = std::vector<std::uint64_t>;

/// A minute passes in each step.
struct Minutely {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "burn_rate.Minutely";
  };
  using listens = frugal::list<frugal::on::backward, frugal::on::recorded>;

  Told* told = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Minutely const& settings) : told_(settings.told) {}
    void on_backward(frugal::Backward const&) { now += 60; }
    void on_recorded(frugal::Recorded const& phase) {
      if (!told_ || phase.event.name != "budget") return;
      for (auto const& [name, value] : phase.event.fields) {
        if (name != "action" || std::get<std::string>(value) != "stop") continue;
        told_->push_back(phase.event.at.step);
      }
    }

   private:
    Told* told_;
  };
};

CostMeter meter(double price) {
  CostMeter made{.price = PricePerDevice(price), .clock = &fake_clock};
  made.energy.processors = false;
  return made;
}

TEST_CASE(
    "a run that costs more an hour than the limit is warned of once, when the window is full") {
  BurnRate<Usd<3>, PerHour> const limit;
  auto const fast = run({}, Optimizer{}, meter(5), limit, Minutely{}).report;
  REQUIRE(fast.warnings.size() == 1);
  CHECK(fast.warnings[0] == "BurnRate: the run spends 5 USD an hour, and the limit is 3 USD");
  CHECK(run({}, Optimizer{}, meter(2.9), limit, Minutely{}).report.warnings.empty());
  CHECK(run({}, Optimizer{}, meter(2.9), BurnRate<Usd<69>, PerDay>{}, Minutely{})
            .report.warnings.size() == 1);
}

TEST_CASE("with Stop the run ends once the window is full") {
  auto const report = run({}, Optimizer{}, meter(5), BurnRate<Usd<3>, Stop>{}, Minutely{}).report;
  CHECK(report.stopped_by == "BurnRate");
  CHECK(report.steps == 11);  // ten minutes after the first step
}

TEST_CASE("a stop is told, also without a level and after one that was told") {
  auto const report =
      run({}, Optimizer{}, meter(5), BurnRate<Usd<3>, Stop>{.levels = {}}, Minutely{}).report;
  CHECK(report.stopped_by == "BurnRate");
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0] ==
        "BurnRate: the run spends 5 USD an hour, and the limit is 3 USD; it ends here");

  TemporaryFolder const folder;
  Job const job{.folder = folder.path()};
  BurnRate<Usd<3>, Stop> const limit{.window = 300};
  Told told;
  static_cast<void>(run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}, meter(5), limit,
                        Minutely{.told = &told}));
  CHECK(told == Told{6});
  // Started again it ends again, five minutes after its first step.
  static_cast<void>(run(job, Optimizer{}, frugal::Checkpoint<Every<4>>{}, meter(5), limit,
                        Minutely{.told = &told}));
  CHECK(told == Told{6, 12});
}

TEST_CASE("settings that cannot be meant, and an unknown price, are refused") {
  for (double const bad : {0.0, -1.0, std::nan("")}) {
    CHECK_THROWS_AS(run({}, Optimizer{}, meter(5), BurnRate<Usd<3>>{.limit = bad}),
                    frugal::SettingsError);
    CHECK_THROWS_AS(run({}, Optimizer{}, meter(5), BurnRate<Usd<3>>{.window = bad}),
                    frugal::SettingsError);
  }
  CostMeter unpriced = meter(1);
  unpriced.price = {};
  CHECK_THROWS_AS(run({}, Optimizer{}, unpriced, BurnRate<Usd<3>>{}), frugal::SettingsError);
}

}  // namespace frugal_test::policy_burn_rate
