// SPDX-License-Identifier: Apache-2.0
// needs: recipes
#include <frugal/search/entrant.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report/audit.hpp>
#include <frugal/report/cost_meter.hpp>
#include <frugal/search.hpp>

#include <c10/util/Exception.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

namespace frugal_test::search_watch {

using namespace support;
namespace fr = frugal;
using fr::RungUnit;
using fr::detail::SearchWatch;

/// Each call takes at least ten milliseconds, and raises SIGTERM in one of them.
struct Slow {
  int* calls = nullptr;
  int signal_at = 0;
  template <class Module>
  fr::Loss operator()(Module& module, fr::Batch const& batch) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (++*calls == signal_at) std::raise(SIGTERM);
    return fr::CrossEntropy{}(module, batch);
  }
};

struct Ran {
  fr::Report report{};
  bool reached = false;
  std::uint64_t weights = 0;
};
/// One fit of 18 steps in a folder, by batches of 8 samples and, at the end of an epoch, of 4.
Ran run(TemporaryFolder const& folder, SearchWatch watch, int signal_at = 0) {
  fr::TensorDataset train(samples(44), {.batch = 8});
  int calls = 0;
  Ran ran;
  watch.reached = &ran.reached;
  fr::Trainer trainer{Mlp{},
                      Slow{&calls, signal_at},
                      fr::Settings{.run_dir = folder.path(), .steps = 18},
                      fr::Optimize<fr::SGD>{},
                      fr::Schedule<fr::Cosine>{},
                      fr::Checkpoint<fr::Every<5>>{},
                      std::move(watch)};
  ran.report = trainer.fit(train);
  ran.weights = fr::hash_of_tensors(trainer.module());
  return ran;
}

TEST_CASE(
    "a rung of steps or samples ends at the first step that has as many, and the run goes on "
    "exactly") {
  TemporaryFolder alone, steps, both;
  Ran const whole = run(alone, {});
  CHECK(whole.report.steps == 18);
  CHECK(!whole.reached);
  Ran const first = run(steps, {.until = 7});
  CHECK(first.report.preempted);
  CHECK(first.report.preempted_by == fr::kinds::search_watch::name);
  CHECK(first.reached);
  CHECK(first.report.steps == 7);
  CHECK(run(steps, {}).weights == whole.weights);
  // Batches end at 8, 16, 24, 32, 40 and 44 samples.
  Ran const fifth = run(both, {.unit = RungUnit::samples, .until = 33});
  CHECK(fifth.report.samples == 40);
  CHECK(fifth.report.steps == 5);
  // It is there already: nothing is trained.
  Ran const again = run(both, {.unit = RungUnit::samples, .until = 40});
  CHECK(again.reached);
  CHECK(again.report.steps == 5);
  CHECK(run(both, {}).weights == whole.weights);
}

TEST_CASE("a rung of seconds or cents counts the time of all processes of the run") {
  TemporaryFolder alone, folder;
  Ran const whole = run(alone, {});
  // A cent pays for 20 milliseconds, and a step takes at least ten.
  SearchWatch watch{.unit = RungUnit::cents, .until = 2, .seconds_per_unit = 0.02};
  Ran const first = run(folder, watch);
  CHECK(first.reached);
  CHECK(first.report.total_seconds() >= 0.04);
  CHECK(first.report.steps >= 1);
  CHECK(first.report.steps <= 4);
  watch.until = 100'000;
  watch.unit = RungUnit::seconds;
  Ran const last = run(folder, watch);
  CHECK(!last.reached);
  CHECK(last.report.steps == 18);
  CHECK(last.weights == whole.weights);
  // The time of the first process alone is enough.
  TemporaryFolder short_one;
  watch = {.unit = RungUnit::seconds, .until = 1, .seconds_per_unit = 0.03};
  Ran const before = run(short_one, watch);
  Ran const after = run(short_one, watch);
  CHECK(after.reached);
  CHECK(after.report.steps == before.report.steps);
}

TEST_CASE("a notice and a spent budget preempt a trial before the end of its rung") {
  TemporaryFolder noticed, poor;
  fr::detail::PreemptionSignals signals;
  Ran const stopped = run(noticed, {.until = 12, .signals = &signals}, 4);
  CHECK(stopped.report.preempted);
  CHECK(!stopped.reached);
  CHECK(stopped.report.steps == 4);
  CHECK(signals.requested());
  int asked = 0;
  std::function<bool()> const is_spent = [&asked] { return ++asked > 0; };
  Ran const broke = run(poor, {.until = 12, .is_spent = &is_spent});
  CHECK(broke.report.preempted);
  CHECK(!broke.reached);
  CHECK(asked == 1);
}

}  // namespace frugal_test::search_watch

namespace frugal_test::search_entrant {

using namespace support;
namespace fr = frugal;

struct Shape {
  int width = 4;
};

/// Each training step takes at least five milliseconds. Something happens in the step with a number: there is no memory,
/// the machine is to go, or it has lost its data; or a save finds a weight
/// that its files do not hold.
struct Slow {
  int* calls = nullptr;
  int fails_at = 0;
  int signal_at = 0;
  int no_data_at = 0;
  int too_large_at = 0;
  /// What a search compares of it: nothing.
  std::string settings() const { return {}; }
  template <class Module>
  fr::Loss operator()(Module& module, fr::Batch const& batch) const {
    if (!module.is_training()) return fr::CrossEntropy{}(module, batch);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (++*calls == fails_at) TORCH_CHECK_WITH(OutOfMemoryError, false, "of the test");
    if (*calls == signal_at) std::raise(SIGTERM);
    if (*calls == no_data_at) throw fr::DataError({"no data", "here", "of the test", "none"});
    if (*calls == too_large_at)
      throw fr::WeightRangeError({"too large", "w", "of the test", "none"});
    return fr::CrossEntropy{}(module, batch);
  }
};

constexpr double price = 3600;  // US dollars per hour: a cent is ten milliseconds

struct Searched {
  TemporaryFolder folder{};
  fr::TensorDataset train{samples(64), {.batch = 8}};
  fr::TensorDataset valid{samples(32, 95), {.batch = 16, .shuffle = false}};
  int calls = 0, signal_at = 0, no_data_at = 0, too_large_at = 0;
  fr::SearchSettings settings{.settings = {.run_dir = folder.path(), .steps = 27, .seed = 5},
                              .finalists = {.count = 0}};

  template <class Schedule, class... Ps>
  fr::SearchOutcome run(Schedule const& schedule, int fails_at, Ps const&... policies) {
    fr::SearchJob const job{[](Shape const& shape) { return Mlp({.hidden = shape.width}); },
                            Slow{&calls, fails_at, signal_at, no_data_at, too_large_at},
                            train,
                            valid,
                            fr::Checkpoint<fr::Every<5>>{},
                            policies...};
    fr::SearchSpace const space{
        fr::Axis<fr::Recipe<fr::Optimize<fr::SGD>, fr::Schedule<fr::Cosine>>>{},
        fr::vary<&fr::Optimize<fr::SGD>::lr>(fr::LogUniform{1e-2, 1}),
        fr::vary<&Shape::width>(fr::Int{2, 8, 2})};
    return fr::search(space, job, settings, schedule);
  }
};

TEST_CASE("a file of another trial's folder, or of the data, is not one of this trial") {
  using frugal::detail::is_in_folder;
  CHECK(is_in_folder("/run/trials/0001", "/run/trials/0001"));
  CHECK(is_in_folder("/run/trials/0001/checkpoints/4", "/run/trials/0001"));
  CHECK(is_in_folder("/run/trials/0001: line 3", "/run/trials/0001"));
  CHECK_FALSE(is_in_folder("/run/trials/10001/checkpoints/4", "/run/trials/1000"));
  CHECK_FALSE(is_in_folder("/run/trials/10000/checkpoints/4", "/run/trials/1000"));
  CHECK_FALSE(is_in_folder("/run/trials/1000.tar", "/run/trials/1000"));
}

TEST_CASE(
    "rungs in seconds and cents end by the clock, and a promoted trial has the bits of its recipe "
    "alone") {
  Searched search;
  fr::RungUnit unit = fr::RungUnit::cents;
  std::uint64_t least = 4;
  SUBCASE("cents") {
    search.settings.dollars_per_hour = price;
    search.settings.horizon = 36;
  }
  SUBCASE("seconds") {
    unit = fr::RungUnit::seconds;
    least = 1;
    search.settings.horizon = 3;
    // One step and a bit more: the first rung ends after one second.
    search.settings.settings.steps = 300;
  }
  fr::SearchOutcome const found =
      search.run(fr::SuccessiveHalving<>{.trials = 3, .least = least, .unit = unit}, 0);
  double const second_of_unit = unit == fr::RungUnit::cents ? 0.01 : 1;
  CHECK(found.unit == fr::name_of(unit));
  std::size_t promoted = 0;
  for (fr::SearchTrial const& each : found.history.trials) {
    for (std::size_t k = 0; k < each.rungs.size(); ++k) {
      std::uint64_t const budget = found.rungs.at(0).at(k);
      bool const is_last = k + 1 == found.rungs[0].size();
      if (!is_last) CHECK(each.rungs[k].seconds >= second_of_unit * static_cast<double>(budget));
      if (is_last) CHECK(each.rungs[k].steps == search.settings.settings.steps);
      if (k != 0) {
        CHECK(each.rungs[k].steps >= each.rungs[k - 1].steps);
        CHECK(each.rungs[k].seconds >= each.rungs[k - 1].seconds);
        ++promoted;
      }
    }
  }
  CHECK(promoted >= 1);
  REQUIRE(found.winner);
  CHECK(found.best().rungs.front().steps < *search.settings.settings.steps);

  int ignored = 0;
  TemporaryFolder alone;
  torch::manual_seed(found.best().seed);
  fr::Trainer trainer{Mlp({.hidden = static_cast<int>(*found.best().candidate.values[1])}),
                      Slow{&ignored},
                      fr::Settings{.run_dir = alone.path(),
                                   .steps = search.settings.settings.steps,
                                   .seed = found.best().seed},
                      fr::Optimize<fr::SGD>{.lr = *found.best().candidate.values[0]},
                      fr::Schedule<fr::Cosine>{},
                      fr::Checkpoint<fr::Every<5>>{}};
  static_cast<void>(trainer.fit(search.train));
  Mlp loaded({.hidden = static_cast<int>(*found.best().candidate.values[1])});
  static_cast<void>(fr::load_weights(loaded, found.weights));
  CHECK(fr::hash_of_tensors(loaded) == fr::hash_of_tensors(trainer.module()));
}

TEST_CASE("a trial that fails after a promotion has paid for both rungs") {
  Searched search;
  search.settings.dollars_per_hour = price;
  // Three trials of nine steps, then the second rung of one of them.
  fr::SearchOutcome const found =
      search.run(fr::SuccessiveHalving<>{.trials = 3, .least = 9}, 3 * 9 + 4);
  std::size_t failed = 0;
  for (fr::SearchTrial const& each : found.history.trials) {
    for (fr::RungResult const& rung : each.rungs) {
      CHECK(*rung.dollars == doctest::Approx(rung.seconds / 3600 * price));
    }
    if (each.state != fr::TrialState::failed) continue;
    ++failed;
    REQUIRE(each.rungs.size() == 2);
    CHECK(each.outcome.find("out of memory") == 0);
    CHECK(*each.rungs[1].dollars > *each.rungs[0].dollars);
  }
  CHECK(failed == 1);
  CHECK(found.winner.has_value());
}

TEST_CASE("CostMeter bills the trials, and one that fails, too") {
  Searched search;
  search.settings.objectives = {{.name = "loss"}, {.name = "dollars"}};
  fr::CostMeter meter{.price = fr::plan::PricePerDevice(price), .devices = 1};
  fr::SearchOutcome const found =
      search.run(fr::SuccessiveHalving<>{.trials = 3, .least = 9}, 3 * 9 + 4, meter);
  std::size_t failed = 0;
  for (fr::SearchTrial const& each : found.history.trials) {
    fr::RungResult const& first = each.rungs.at(0);
    // The meter does not bill the time in which the module is made and evaluated.
    CHECK(*first.dollars >= 9 * 0.005 / 3600 * price);
    CHECK(*first.dollars <= first.seconds / 3600 * price);
    CHECK(first.values[1] == *first.dollars);
    if (each.state != fr::TrialState::failed) continue;
    ++failed;
    // Three steps more, and the meter has billed them.
    CHECK(*each.rungs.at(1).dollars >= *first.dollars + 3 * 0.005 / 3600 * price);
    CHECK(*each.rungs[1].dollars <= each.rungs[1].seconds / 3600 * price);
  }
  CHECK(failed == 1);
}

TEST_CASE("a budget in dollars is what CostMeter bills, and needs its price") {
  Searched search;
  search.settings.budget.dollars = 1e-6;
  fr::SuccessiveHalving<> const schedule{.trials = 3, .least = 9};
  fr::CostMeter const meter{.price = fr::plan::PricePerDevice(price), .devices = 1};
  fr::SearchOutcome const found = search.run(schedule, 0, meter);
  CHECK(found.stopped_by == "budget");
  CHECK(search.calls < 9);
  fr::CostMeter euros = meter;
  euros.currency = "EUR";
  CHECK_THROWS_WITH_AS(static_cast<void>(search.run(schedule, 0, euros)),
                       doctest::Contains("CostMeter has no price in US dollars"),
                       fr::SettingsError);
}

TEST_CASE("a machine without its data blames no trial, and another one goes on") {
  Searched calm, poor;
  fr::SuccessiveHalving<> const schedule{.trials = 3, .least = 9};
  fr::SearchOutcome const whole = calm.run(schedule, 0);
  // More often than a trial may kill its process.
  poor.settings.most_kills = 2;
  for (int start = 0; start < 4; ++start) {
    poor.no_data_at = poor.calls + 1;
    CHECK_THROWS_AS(static_cast<void>(poor.run(schedule, 0)), fr::DataError);
  }
  poor.no_data_at = 0;
  fr::SearchOutcome const found = poor.run(schedule, 0);
  for (fr::SearchTrial const& each : found.history.trials) {
    CHECK(each.failures == 0);
    CHECK(each.kills == 0);
    CHECK(each.state != fr::TrialState::failed);
  }
  CHECK(found.winner == whole.winner);
  CHECK(found.best().values() == whole.best().values());
}

TEST_CASE(
    "a weight that the files do not hold is a result of its trial, and no fault of the disk") {
  Searched search;
  search.too_large_at = 3;
  fr::SearchOutcome const found = search.run(fr::SuccessiveHalving<>{.trials = 3, .least = 9}, 0);
  std::size_t failed = 0;
  for (fr::SearchTrial const& each : found.history.trials) {
    if (each.state != fr::TrialState::failed) continue;
    ++failed;
    CHECK(each.outcome.find("too large") != std::string::npos);
  }
  CHECK(failed == 1);
  CHECK(found.winner.has_value());
}

TEST_CASE("Spot preempts a worker, and not the search") {
  Searched calm, spot;
  fr::SuccessiveHalving<> const schedule{.trials = 3, .least = 9};
  fr::SearchOutcome const whole = calm.run(schedule, 0, fr::Spot<fr::SigtermSave>{});
  CHECK(whole.exit_code() == 0);
  spot.signal_at = 13;
  fr::SearchOutcome const stopped = spot.run(schedule, 0, fr::Spot<fr::SigtermSave>{});
  CHECK(stopped.interrupted);
  CHECK(stopped.exit_code() == 75);
  CHECK(spot.calls == 13);
  fr::SearchOutcome const found = spot.run(schedule, 0, fr::Spot<fr::SigtermSave>{});
  CHECK(found.exit_code() == 0);
  CHECK(spot.calls == calm.calls);  // no step twice
  CHECK(found.winner == whole.winner);
  CHECK(found.best().values() == whole.best().values());
}

}  // namespace frugal_test::search_entrant
