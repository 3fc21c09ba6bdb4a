// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string_view>

namespace frugal_test::policy_stop_after {

using namespace support;
using namespace support::dying_runs;
using frugal::EarlyStop;
using frugal::Every;
using frugal::Hours;
using frugal::Minutes;
using frugal::Patience;
using frugal::Seconds;
using frugal::StopAfter;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<4>>;

/// Two hours pass in one step, or between an epoch's last step and the end of the epoch.
struct Slow {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "stop_after.Slow";
  };
  using listens = frugal::list<frugal::on::step, frugal::on::epoch_end>;
  using before = frugal::list<frugal::kinds::stop_after>;

  std::uint64_t step = 0;
  std::uint64_t epoch = 0;

  class State {
   public:
    using transient = void;
    explicit State(Slow const& settings) : step_(settings.step), epoch_(settings.epoch) {}

    void on_step(frugal::Step& phase) {
      if (phase.counters().step == step_) pass(phase);
    }
    void on_epoch_end(frugal::EpochEnd& phase) {
      if (phase.counters().epoch == epoch_) pass(phase);
    }

   private:
    static void pass(frugal::CheckpointPhase& phase) {
      auto& progress = phase.run_state().progress;
      progress.resume_from({.from = "there", .step = phase.counters().step},
                           progress.seconds() + 2 * 3600);
    }

    std::uint64_t step_;
    std::uint64_t epoch_;
  };
};

TEST_CASE("the limit is a number of seconds, minutes or hours") {
  CHECK(StopAfter<Seconds<90>>{}.limit == std::chrono::seconds(90));
  CHECK(StopAfter<Minutes<90>>{}.limit == std::chrono::minutes(90));
  CHECK(StopAfter<Hours<4>>{}.limit == std::chrono::hours(4));
  CHECK(StopAfter<Hours<4>>{.limit = std::chrono::minutes(5)}.limit == std::chrono::seconds(300));
}

TEST_CASE("a run ends with the step in which its time is up, and is saved there") {
  TemporaryFolder const folder;
  auto const report =
      run({.folder = folder.path()}, Optimizer{}, Saves{}, StopAfter<Hours<1>>{}, Slow{.step = 5})
          .report;
  CHECK(report.steps == 5);
  CHECK(report.stopped_by == "StopAfter");
  CHECK_FALSE(report.preempted);
  CHECK(report.exit_code() == 0);
  CHECK(steps_in(folder.path()).back() == 5);
}

TEST_CASE("it ends without a policy that saves as well") {
  CHECK(run({}, Optimizer{}, StopAfter<Hours<1>>{}, Slow{.step = 5}).report.steps == 5);
  CHECK(run({}, Optimizer{}, StopAfter<Hours<3>>{}, Slow{.step = 5}).report.steps == 33);
}

TEST_CASE("a run whose time is up in a validation ends behind it") {
  auto const report = run({}, Optimizer{}, StopAfter<Hours<1>>{}, Slow{.epoch = 2}).report;
  CHECK(report.epochs == 2);
  CHECK(report.validations.size() == 2);
  CHECK(report.stopped_by == "StopAfter");
}

TEST_CASE(
    "an ended run stays at its end, and with a longer limit ends in the bits of a whole run") {
  TemporaryFolder const folder;
  auto const whole = run({.folder = folder / "whole"}, Optimizer{}, Saves{});
  int number = 0;
  // In an epoch, at a step that is saved anyway, at an epoch's last step, and at its end.
  for (Slow const slow : {Slow{.step = 5}, Slow{.step = 8}, Slow{.step = 11}, Slow{.epoch = 1}}) {
    Job const job{.folder = folder / std::to_string(number++)};
    auto const ended = run(job, Optimizer{}, Saves{}, StopAfter<Hours<1>>{}, slow).report;
    CHECK(ended.stopped_by == "StopAfter");

    auto const again = run(job, Optimizer{}, Saves{}, StopAfter<Hours<1>>{}, slow);
    CHECK(again.losses.empty());
    CHECK(again.report.steps == ended.steps);
    CHECK(again.report.stopped_by == "StopAfter");

    auto const longer = run(job, Optimizer{}, Saves{}, StopAfter<Hours<9>>{}, slow);
    CHECK(longer.report.stopped_by.empty());
    CHECK(longer.report.steps == whole.report.steps);
    CHECK(longer.report.train_loss == whole.report.train_loss);
    CHECK(same_bits(longer.tensors, whole.tensors));
    REQUIRE(longer.report.validations.size() == whole.report.validations.size());
    for (std::size_t i = 0; i < whole.report.validations.size(); ++i) {
      CHECK(longer.report.validations[i].metrics == whole.report.validations[i].metrics);
    }
  }
}

TEST_CASE("the time before a resume counts") {
  TemporaryFolder const folder;
  StopAfter<Hours<3>> const limit;
  // Two hours in the process that dies, and two in the next.
  CHECK(run({.folder = folder.path(), .dies_at = 10}, Optimizer{}, Saves{}, limit, Slow{.step = 3})
            .died);
  auto const report =
      run({.folder = folder.path()}, Optimizer{}, Saves{}, limit, Slow{.step = 13}).report;
  CHECK(report.steps == 13);
  CHECK(report.stopped_by == "StopAfter");
}

TEST_CASE("the time that was lost with the steps after the last checkpoint does not count") {
  TemporaryFolder const folder;
  StopAfter<Hours<3>> const limit;
  CHECK(run({.folder = folder.path(), .dies_at = 8}, Optimizer{}, Saves{}, limit, Slow{.step = 6})
            .died);
  auto const report =
      run({.folder = folder.path()}, Optimizer{}, Saves{}, limit, Slow{.step = 13}).report;
  CHECK(report.steps == 33);
}

TEST_CASE("a run that its patience ends in the same event is ended by that, whatever the limit") {
  TemporaryFolder const folder;
  // No improvement is large enough.
  EarlyStop<Patience<1>> const impatient{.min_delta = 100};
  auto const report = run({.folder = folder.path()}, Optimizer{}, Saves{}, impatient,
                          StopAfter<Hours<1>>{}, Slow{.epoch = 2})
                          .report;
  CHECK(report.epochs == 2);
  CHECK(report.stopped_by == "EarlyStop");
  auto const again = run({.folder = folder.path()}, Optimizer{}, Saves{}, impatient,
                         StopAfter<Hours<9>>{}, Slow{.epoch = 2});
  CHECK(again.losses.empty());
  CHECK(again.report.stopped_by == "EarlyStop");
}

TEST_CASE("a run may be resumed without it, and with it") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 6};
  auto const whole = run({.folder = folder / "whole"}, Optimizer{}, Saves{});
  CHECK(run(job, Optimizer{}, Saves{}, StopAfter<Hours<1>>{}).died);
  CHECK(run(job, Optimizer{}, Saves{}).died);
  job.dies_at = 0;
  CHECK(same_bits(run(job, Optimizer{}, Saves{}, StopAfter<Hours<1>>{}).tensors, whole.tensors));
}

TEST_CASE("a limit that is not above 0 is refused") {
  for (double const seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    StopAfter<Hours<1>> const bad{.limit = std::chrono::duration<double>(seconds)};
    CHECK_THROWS_AS(run({}, Optimizer{}, bad), frugal::SettingsError);
  }
}

}  // namespace frugal_test::policy_stop_after
