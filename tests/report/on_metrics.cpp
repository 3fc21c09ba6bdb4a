// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/dry_run.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/train_metrics.hpp>
#include <frugal/report/on_metrics.hpp>

#include "support/files.hpp"
#include "support/scripted.hpp"

#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::policy_on_metrics {

using namespace frugal_test::support;
using frugal::Every;
using frugal::MetricRecord;
using frugal::OnMetrics;
using frugal::RecordKind;

using Call = std::function<void(MetricRecord const&)>;

/// Two epochs of 5 steps, validated after each.
template <class... Ps>
auto trainer_of(frugal::Settings settings, Ps const&... policies) {
  settings.epochs = 2;
  settings.seed = 5;
  return frugal::Trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, settings,
                         frugal::Optimize<frugal::SGD>{}, policies...};
}
auto train() { return frugal::TensorDataset(samples(18), {.batch = 4}); }
auto valid() { return frugal::TensorDataset(samples(9, 92), {.batch = 4}); }

std::vector<std::string> names(std::vector<MetricRecord> const& all) {
  std::vector<std::string> found;
  for (MetricRecord const& each : all) found.push_back(each.name);
  return found;
}

/// Records an event at each step.
struct Recording {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Recording";
  };
  using listens = frugal::list<frugal::on::fit_begin, frugal::on::step>;
  using before = frugal::list<frugal::kinds::on_metrics>;
  struct State {
    explicit State(Recording const&) {}
    void on_fit_begin(frugal::FitBegin& phase) {
      phase.set_gauge("dollars", 1.5);
      phase.record({"price", {{"device", std::string("CPU")}}});
    }
    void on_step(frugal::Step& phase) {
      if (phase.counters().step == 3) phase.record({"third", {{"at", std::uint64_t{3}}}});
    }
  };
};

TEST_CASE("the begin of a fork, and of a resume after a dry run, is where the run begins") {
  TemporaryFolder const folder;
  auto const begins = [&](std::string const& run, std::uint64_t steps,
                          frugal::Checkpoint<Every<2>> const& saves) {
    std::vector<MetricRecord> all;
    Call const call = [&](MetricRecord const& record) { all.push_back(record); };
    frugal::Trainer trainer{
        std::make_shared<Mlp>(),
        frugal::CrossEntropy{},
        frugal::Settings{.run_dir = folder / run, .epochs = 2, .steps = steps, .seed = 5},
        frugal::Optimize<frugal::SGD>{},
        OnMetrics<Call, Every<2>>{.call = call},
        saves,
        frugal::Rollback<Every<2>>{},
        frugal::DryRun<>{}};
    trainer.fit(train());
    std::vector<std::uint64_t> steps_of_begins;
    for (MetricRecord const& each : all) {
      if (each.name == "begin") steps_of_begins.push_back(each.at.step);
    }
    return steps_of_begins;
  };
  CHECK(begins("trunk", 4, {}) == std::vector<std::uint64_t>{0});
  CHECK(begins("trunk", 6, {}) == std::vector<std::uint64_t>{4});
  CHECK(begins("fork", 8, {.from = folder / "trunk"}) == std::vector<std::uint64_t>{6});
}

TEST_CASE("a dry run that fails has written nothing") {
  std::vector<MetricRecord> all;
  Call const call = [&](MetricRecord const& record) { all.push_back(record); };
  frugal::Batch bad = samples(18);
  bad.data = bad.data.narrow(1, 0, 5);
  auto trainer = trainer_of({}, OnMetrics<Call, Every<2>>{.call = call}, frugal::DryRun<>{});
  CHECK_THROWS_AS(trainer.fit(frugal::TensorDataset(bad, {.batch = 4})), frugal::Error);
  CHECK(all.empty());
}

TEST_CASE("a callable gets the begin, each due step, validation, epoch, event, and the end") {
  std::vector<MetricRecord> all;
  Seen seen;
  Call const call = [&](MetricRecord const& record) { all.push_back(record); };
  auto trainer = trainer_of({}, OnMetrics<Call, Every<2>>{.call = call}, frugal::ClipNorm<1000.0>{},
                            Recording{}, frugal::Schedule<frugal::Warmup<5>, frugal::Constant<>>{},
                            Spy{.seen = &seen});
  auto const report = trainer.fit(train(), valid());
  CHECK(names(all) == std::vector<std::string>{"begin", "price", "step", "third", "step", "epoch",
                                               "validation", "step", "step", "step", "epoch",
                                               "validation", "end"});
  CHECK(all[0].number("parameters") == 83);
  CHECK(all[0].number("seed") == 5);
  CHECK(all[1].kind == RecordKind::event);
  CHECK(all[1].text("device") == "CPU");
  MetricRecord const& step = all[4];
  CHECK(step.kind == RecordKind::step);
  CHECK(step.at.step == 4);
  CHECK(step.number("loss") == seen.losses[3]);
  CHECK(step.number("lr_factor") == 4.0 / 5);
  CHECK(step.number("learning_rate") == 1e-3 * (4.0 / 5));  // of SGD's default
  CHECK(step.number("gradient_norm").value() ==
        doctest::Approx(seen.gradient_norms[3]).epsilon(1e-6));
  CHECK(step.number("dollars") == 1.5);
  CHECK(step.number("memory_bytes").value() > 1e6);
  CHECK(all[5].number("loss") == seen.epoch_losses[0]);
  CHECK(all[6].number("loss") == report.validations[0].metrics["loss"]);
  auto const* const outcome = trainer.template policy<frugal::kinds::on_metrics>().outcome.get();
  REQUIRE(outcome != nullptr);
  CHECK(outcome->written == 13);
  CHECK(outcome->lost == 0);
}

TEST_CASE("a callable that throws loses its records, is reported once, and changes no weight") {
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));
  int calls = 0;
  std::size_t intact = 0;
  Call const bad = [&](MetricRecord const&) {
    if (++calls % 2 == 0) throw std::runtime_error("the endpoint is gone");
  };
  Call const good = [&](MetricRecord const&) { ++intact; };
  auto watched = trainer_of({}, OnMetrics<Call, Every<1>>{.call = bad},
                            OnMetrics<Call, Every<1>>{.call = good});
  auto const report = watched.fit(train(), valid());
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
  CHECK(calls == 16);
  CHECK(intact == 16);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("OnMetrics could not write at step 1 (the endpoint is gone)") == 0);
}

TEST_CASE("an exception of no known type is counted too") {
  struct Throws {
    void operator()(MetricRecord const&) const { throw 7; }
  };
  auto trainer = trainer_of({}, OnMetrics<Throws>{});
  auto const report = trainer.fit(train(), valid());
  CHECK(report.warnings.size() == 1);
  auto const* const outcome = trainer.template policy<frugal::kinds::on_metrics>().outcome.get();
  REQUIRE(outcome != nullptr);
  CHECK(outcome->lost == 6);
  CHECK(outcome->written == 0);
  CHECK(outcome->first_failure == "an exception that is not a std::exception");
}

TEST_CASE("an empty function is refused") {
  auto trainer = trainer_of({}, OnMetrics<>{});
  CHECK_THROWS_WITH_AS(static_cast<void>(trainer.fit(train())),
                       doctest::Contains("OnMetrics::call"), frugal::SettingsError);
}

}  // namespace frugal_test::policy_on_metrics
