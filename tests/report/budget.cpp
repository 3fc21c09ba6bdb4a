// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/budget.hpp>
#include <frugal/report/cost_meter.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace frugal_test::policy_budget {

using namespace support;
using namespace support::dying_runs;
using frugal::Budget;
using frugal::CostMeter;
using frugal::Every;
using frugal::Hours;
using frugal::KilowattHours;
using frugal::NotifyCommand;
using frugal::Stop;
using frugal::Usd;
using frugal::plan::PricePerDevice;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<4>>;

double now = 0;
double fake_clock() { return now; }

/// One "budget" event: its step, level and action.
struct Told {
  std::uint64_t step;
  double level;
  std::string action;
  bool operator==(Told const&) const = default;
  friend std::ostream& operator<<(std::ostream& out, Told const& told) {
    return out << told.step << ' ' << told.level << ' ' << told.action;
  }
};
using Tale = std::vector<Told>;

/// An hour passes in each step. Keeps what the budget says.
struct Hourly {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "budget.Hourly";
  };
  using listens = frugal::list<frugal::on::backward, frugal::on::recorded>;

  Tale* tale = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Hourly const& settings) : tale_(settings.tale) {}

    void on_backward(frugal::Backward const&) { now += 3600; }
    void on_recorded(frugal::Recorded const& phase) {
      if (!tale_ || phase.event.name != "budget") return;
      Told told{phase.event.at.step, 0, ""};
      for (auto const& [name, value] : phase.event.fields) {
        if (name == "level") told.level = std::get<double>(value);
        if (name == "action") told.action = std::get<std::string>(value);
      }
      tale_->push_back(told);
    }

   private:
    Tale* tale_;
  };
};

/// A dollar an hour: 33 for the whole run.
CostMeter meter(double price = 1) {
  CostMeter made{.price = PricePerDevice(price), .clock = &fake_clock};
  made.energy.processors = false;
  return made;
}

TEST_CASE("50, 80 and 100 per cent are told once each, at the step in which they are reached") {
  Tale tale;
  Budget<Usd<20>> budget;
  budget.projected = false;
  auto const report = run({}, Optimizer{}, meter(), budget, Hourly{.tale = &tale}).report;
  CHECK(report.steps == 33);
  CHECK(tale == Tale{{10, 0.5, "warn"}, {16, 0.8, "warn"}, {20, 1.0, "warn"}});
  CHECK(advises(report, "Budget: 50% of 20 USD is reached: 10 USD spent"));
  CHECK(report.stopped_by.empty());
}

TEST_CASE(
    "a run that will spend more than its budget says so once, and one that will not does not") {
  Tale tale;
  Budget<Usd<30>> tight;
  tight.levels = {};
  auto const report = run({}, Optimizer{}, meter(), tight, Hourly{.tale = &tale}).report;
  CHECK(tale == Tale{{11, 1.0, "projected"}});
  CHECK(advises(report, "Budget: the run will spend 33 USD of 30 USD until its end"));
  tale.clear();
  CHECK(run({}, Optimizer{}, meter(), Budget<Usd<34>>{.levels = {}}, Hourly{.tale = &tale})
            .report.warnings.empty());
  CHECK(tale.empty());
}

TEST_CASE("a projected overspend is told from 1% of the budget on: the first steps are slow") {
  Tale tale;
  Budget<Usd<1300>> tight;
  tight.levels = {};
  // 1,320 steps, projected from the eleventh on.
  static_cast<void>(
      run({.folder = {}, .epochs = 120}, Optimizer{}, meter(), tight, Hourly{.tale = &tale}));
  CHECK(tale == Tale{{13, 1.0, "projected"}});
}

TEST_CASE("with Stop the run ends in the step in which the budget is spent, and is saved there") {
  TemporaryFolder const folder;
  Tale tale;
  Job const job{.folder = folder.path()};
  auto const ended = run(job, Optimizer{}, Saves{}, meter(),
                         Budget<Usd<7>, Stop>{.projected = false}, Hourly{.tale = &tale});
  CHECK(ended.report.steps == 7);
  CHECK(ended.report.stopped_by == "Budget");
  CHECK(ended.report.exit_code() == 0);
  CHECK(steps_in(folder.path()).back() == 7);
  CHECK(tale == Tale{{4, 0.5, "warn"}, {6, 0.8, "warn"}, {7, 1.0, "stop"}});

  // Started again it is at its end, and repeats nothing.
  tale.clear();
  auto const again = run(job, Optimizer{}, Saves{}, meter(),
                         Budget<Usd<7>, Stop>{.projected = false}, Hourly{.tale = &tale});
  CHECK(again.losses.empty());
  CHECK(again.report.stopped_by == "Budget");
  CHECK(tale.empty());

  // With more money it goes on, to the bits of a run that was never stopped.
  auto const more = run(job, Optimizer{}, Saves{}, meter(), Budget<Usd<99>, Stop>{}, Hourly{});
  CHECK(more.report.stopped_by.empty());
  auto const whole = run({.folder = folder / "whole"}, Optimizer{}, Saves{});
  CHECK(more.report.train_loss == whole.report.train_loss);
  CHECK(same_bits(more.tensors, whole.tensors));
}

TEST_CASE("a stop is told if its level was told before, by a lower limit or without Stop") {
  TemporaryFolder const folder;
  Tale tale;
  Job const job{.folder = folder.path()};
  Hourly const hourly{.tale = &tale};
  using Stopping = Budget<Usd<20>, Stop>;
  static_cast<void>(run(job, Optimizer{}, Saves{}, meter(), Stopping{.projected = false}, hourly));
  CHECK(tale.back() == Told{20, 1.0, "stop"});
  tale.clear();
  // 20 of 21 is within the hysteresis of the level.
  auto const more =
      run(job, Optimizer{}, Saves{}, meter(), Stopping{.limit = 21, .projected = false}, hourly);
  CHECK(more.report.steps == 21);
  CHECK(tale == Tale{{21, 1.0, "stop"}});

  tale.clear();
  Job const other{.folder = folder / "other", .dies_at = 23};
  CHECK(
      run(other, Optimizer{}, Saves{}, meter(), Budget<Usd<20>>{.projected = false}, hourly).died);
  CHECK(tale.back() == Told{20, 1.0, "warn"});
  tale.clear();
  auto const stops = run({.folder = folder / "other"}, Optimizer{}, Saves{}, meter(),
                         Stopping{.projected = false}, hourly);
  CHECK(stops.report.stopped_by == "Budget");
  CHECK(stops.report.steps == 21);
  CHECK(tale == Tale{{21, 1.0, "stop"}});
}

TEST_CASE("a run that dies again and again before its next save is stopped by its budget") {
  TemporaryFolder const folder;
  Budget<Usd<20>, Stop> const budget{.projected = false};
  Job job{.folder = folder.path(), .dies_at = 4};
  int processes = 0;
  Outcome last;
  do {
    last = run(job, Optimizer{}, frugal::Checkpoint<Every<1000>>{}, meter(), budget, Hourly{});
  } while (last.died && ++processes < 20);
  // Three hours in each, and the twentieth in the seventh.
  CHECK(processes == 6);
  CHECK(last.report.stopped_by == "Budget");
  CHECK(last.report.steps == 2);
}

/// Time passes after the last look of the budget in an epoch.
struct Late {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "budget.Late";
  };
  using listens = frugal::list<frugal::on::epoch_end>;
  using after = frugal::list<frugal::kinds::budget>;

  class State {
   public:
    using transient = void;
    explicit State(Late const&) {}
    void on_epoch_end(frugal::EpochEnd& phase) {
      if (phase.counters().epoch == 3) now += 2 * 3600;
    }
  };
};

TEST_CASE("a level that is reached when the run has ended is a warning: nobody stops it") {
  Tale tale;
  auto const report = run({}, Optimizer{}, meter(), Budget<Usd<34>, Stop>{.levels = {0.99}},
                          Hourly{.tale = &tale}, Late{})
                          .report;
  CHECK(report.steps == 33);
  CHECK(report.stopped_by.empty());
  CHECK(tale == Tale{{33, 1.0, "warn"}});
}

/// Asks for the end of the process in a step, of which the end takes twenty hours.
struct Preempts {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "budget.Preempts";
  };
  using listens = frugal::list<frugal::on::step>;
  using after = frugal::list<frugal::kinds::budget>;

  std::stop_source asked{};
  std::uint64_t at = 0;

  class State {
   public:
    using transient = void;
    explicit State(Preempts const& settings) : asked_(settings.asked), at_(settings.at) {}
    void on_step(frugal::Step& phase) {
      if (phase.counters().step != at_) return;
      now += 20 * 3600;
      asked_.request_stop();
    }

   private:
    std::stop_source asked_;
    std::uint64_t at_;
  };
};

TEST_CASE("a level that is reached when a preempted run is saved is told once, after the resume") {
  TemporaryFolder const folder;
  Tale tale;
  Budget<Usd<40>> budget;
  budget.projected = false;
  auto const fit = [&](std::uint64_t preempted_at) {
    Preempts const preempts{.at = preempted_at};
    frugal::Trainer trainer{
        std::make_shared<Mlp>(),
        frugal::CrossEntropy{},
        frugal::Settings{.run_dir = folder.path(), .steps = 8, .stop = preempts.asked.get_token()},
        Optimizer{},
        Saves{},
        meter(),
        budget,
        Hourly{.tale = &tale},
        preempts};
    frugal::TensorDataset train(samples(43), {.batch = 4});
    return trainer.fit(train);
  };
  CHECK(fit(5).preempted);
  CHECK(tale.empty());
  CHECK(fit(0).resumed->step == 5);
  CHECK(tale == Tale{{6, 0.5, "warn"}});
}

/// A channel whose alerts arrive once a checkpoint is on disk.
struct AfterCheckpoint {
  std::filesystem::path checkpoint{};
  frugal::notify::Delivery delivery{
      .attempts = 1000000, .first_wait{}, .at_end = std::chrono::minutes(5)};
  void require_valid(std::string const&) const {}
  std::string name() const { return "a channel"; }

  class Sender;
};

class AfterCheckpoint::Sender {
 public:
  explicit Sender(AfterCheckpoint const& settings) : checkpoint_(settings.checkpoint) {}
  frugal::notify::Attempt operator()(frugal::notify::Alert const&, std::stop_token const&) const {
    std::this_thread::yield();
    if (std::filesystem::exists(checkpoint_)) return {};
    return {frugal::notify::Attempt::Result::again, "there is no checkpoint"};
  }

 private:
  std::filesystem::path checkpoint_;
};

TEST_CASE("the last checkpoint is on disk before the run waits for its alerts") {
  TemporaryFolder const folder;
  Budget<Usd<7>, Stop, AfterCheckpoint> budget{.projected = false};
  budget.webhook.checkpoint = folder / "checkpoints/step-00000007";
  auto const ended = run({.folder = folder.path()}, Optimizer{}, frugal::Checkpoint<Every<1000>>{},
                         meter(), budget, Hourly{});
  CHECK(ended.report.stopped_by == "Budget");
  CHECK_FALSE(advises(ended.report, "missed"));
}

TEST_CASE("a budget in kilowatt-hours warns and stops by what the counters have read") {
  TemporaryFolder const folder;
  std::filesystem::path const zone = folder / "cap/intel-rapl:0";
  std::filesystem::create_directories(zone);
  std::ofstream(zone / "name") << "package-0\n";
  std::ofstream(zone / "max_energy_range_uj") << "9000000000000000\n";
  std::ofstream(zone / "energy_uj") << 0 << '\n';
  CostMeter energetic = meter();
  energetic.energy = {.powercap = folder / "cap", .gpus = false, .interval_seconds = 0.01};
  // The counter shows three kilowatt-hours from step 3 on, and the run goes on until it was read.
  int calls = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    if (++calls == 3) std::ofstream(zone / "energy_uj") << 10'800'000'000'000 << '\n';
    return frugal::CrossEntropy{}(module, batch);
  };
  Tale tale;
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.epochs = 100000},
                          Optimizer{},
                          energetic,
                          Budget<KilowattHours<2>, Stop>{.projected = false},
                          Hourly{.tale = &tale}};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  auto const report = trainer.fit(train);
  CHECK(report.stopped_by == "Budget");
  REQUIRE(tale.size() == 1);
  CHECK(tale[0].level == 1.0);
  CHECK(tale[0].action == "stop");
  CHECK(advises(report, "Budget: 100% of 2 kWh is reached: 3 kWh spent, and the run ends here"));
}

TEST_CASE("a stop is told, whatever levels are set, and large amounts have no exponent") {
  Tale tale;
  Budget<Usd<20000>, Stop> budget{.levels = {}, .projected = false};
  auto const report = run({}, Optimizer{}, meter(2500), budget, Hourly{.tale = &tale}).report;
  CHECK(report.steps == 8);
  CHECK(tale == Tale{{8, 1.0, "stop"}});
  CHECK(advises(report, "Budget: 100% of 20000 USD is reached: 20000 USD spent"));
}

TEST_CASE("a resumed run does not repeat what was told before its checkpoint") {
  TemporaryFolder const folder;
  Budget<Usd<20>> const budget{.projected = false};
  Tale tale;
  Hourly const hourly{.tale = &tale};
  CHECK(run({.folder = folder.path(), .dies_at = 14}, Optimizer{}, Saves{}, meter(), budget, hourly)
            .died);
  CHECK(tale == Tale{{10, 0.5, "warn"}});
  tale.clear();
  static_cast<void>(run({.folder = folder.path()}, Optimizer{}, Saves{}, meter(), budget, hourly));
  // The hour of step 13, which the kill has undone, is spent.
  CHECK(tale == Tale{{15, 0.8, "warn"}, {19, 1.0, "warn"}});
}

TEST_CASE("a budget may be in hours, and needs no price then") {
  Tale tale;
  CostMeter unpriced = meter();
  unpriced.price = {};
  auto const report = run({}, Optimizer{}, unpriced, Budget<Hours<4>, Stop>{.projected = false},
                          Hourly{.tale = &tale})
                          .report;
  CHECK(report.steps == 4);
  CHECK(tale == Tale{{2, 0.5, "warn"}, {4, 1.0, "stop"}});
}

TEST_CASE("a budget of what is not known is refused, and so is one that cannot be meant") {
  CostMeter unpriced = meter();
  unpriced.price = {};
  CHECK_THROWS_WITH_AS(run({}, Optimizer{}, unpriced, Budget<Usd<20>>{}),
                       doctest::Contains("price of this run is not known"), frugal::SettingsError);
  CostMeter euros = meter();
  euros.currency = "EUR";
  CHECK_THROWS_AS(run({}, Optimizer{}, euros, Budget<Usd<20>>{}), frugal::SettingsError);
  CHECK_THROWS_WITH_AS(run({}, Optimizer{}, meter(), Budget<KilowattHours<5>>{}),
                       doctest::Contains("no counter of energy"), frugal::SettingsError);
  for (double const limit : {0.0, -1.0, std::nan("")}) {
    CHECK_THROWS_AS(run({}, Optimizer{}, meter(), Budget<Usd<20>>{.limit = limit}),
                    frugal::SettingsError);
  }
  CHECK_THROWS_AS(run({}, Optimizer{}, meter(), Budget<Usd<20>>{.levels = {0.5, -1}}),
                  frugal::SettingsError);
  CHECK_THROWS_AS(run({}, Optimizer{}, meter(), Budget<Usd<20>, NotifyCommand>{}),
                  frugal::SettingsError);
}

TEST_CASE("a command gets every warning, and one that fails is reported once and costs no bit") {
  TemporaryFolder const folder;
  std::string const file = (folder / "told").string();
  NotifyCommand command{
      .words = {"sh", "-c", R"(printf '%s %s\n' "$1" "$2" >> "$0")", file, "{level}", "{dollars}"}};
  command.delivery.at_end = std::chrono::minutes(5);
  Budget<Usd<20>, NotifyCommand> budget{.projected = false, .command = command};
  auto const good = run({}, Optimizer{}, meter(), budget, Hourly{});
  CHECK(good.report.warnings.size() == 3);
  CHECK(text_of(file) == "0.5 10\n0.8 16\n1 20\n");

  budget.command.words = {"sh", "-c", "exit 9"};
  auto const bad = run({}, Optimizer{}, meter(), budget, Hourly{});
  CHECK(advises(bad.report, "Budget: the command sh missed 3 of 3 alerts: exit code 9"));
  CHECK(bad.report.steps == 33);
  CHECK(same_bits(bad.tensors, run({}, Optimizer{}).tensors));
}

TEST_CASE("a Rollback repeats no warning") {
  Tale tale;
  int calls = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (++calls == 19) loss.value = loss.value * std::nan("");
    return loss;
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.epochs = 3},
                          Optimizer{},
                          meter(),
                          Budget<Usd<30>>{.projected = false},
                          Hourly{.tale = &tale},
                          frugal::Rollback<>{}};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  static_cast<void>(trainer.fit(train));
  CHECK(calls > 33);
  REQUIRE(tale.size() == 3);
  CHECK(tale[0].level == 0.5);
  CHECK(tale[1].level == 0.8);
  CHECK(tale[2].level == 1.0);
}

}  // namespace frugal_test::policy_budget
