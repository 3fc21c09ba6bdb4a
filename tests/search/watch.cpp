// SPDX-License-Identifier: Apache-2.0
// needs: recipes
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report/audit.hpp>
#include <frugal/search/watch.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
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
