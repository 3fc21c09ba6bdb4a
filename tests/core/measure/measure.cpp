// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/loop/window.hpp>
#include <frugal/core/measure/measure.hpp>
#include <frugal/metrics/accuracy.hpp>

#include "core/loop/stand_ins.hpp"

#include <string>
#include <vector>

namespace frugal_test::loop_measure {

using namespace frugal_test::loop;

/// A run of a module in epoch 3.
struct SmallRun {
  SmallRun() { state.progress.go_to({.epoch = 3}); }
  Net module{};
  Settings settings{.seed = 5};
  frugal::RunState state{.root = frugal::base_module(module), .settings = settings};
};

TEST_CASE("a trial reads its batches and no more, and gives no advice; a measurement does") {
  SmallRun run;
  Stream source{.batches = batches_of_sizes({3, 2, 4})};
  int batches = 0;
  auto const forward = [&](Batch const&) {
    ++batches;
    return Loss{.value = at::zeros({}), .weight = 0};
  };
  static_cast<void>(frugal::detail::measure<list<>, frugal::OneProcess>(
      source, run.state, forward, {.batches = 2, .is_trial = true}));
  CHECK(batches == 2);
  CHECK(run.state.observed.warnings().empty());
  static_cast<void>(
      frugal::detail::measure<list<>, frugal::OneProcess>(source, run.state, forward));
  CHECK(batches == 5);
  REQUIRE(run.state.observed.warnings().size() == 1);
  CHECK(says(run.state.observed.warnings()[0], "validation: the loss is NaN"));
}

TEST_CASE("a source is read in its order of epoch 0, in evaluation mode and without gradients") {
  SmallRun run;
  Stream source{.batches = batches_of_sizes({3, 2})};
  bool always = true;
  auto const forward = [&](Batch const& batch) {
    always = always && !at::GradMode::is_enabled() && !run.module.is_training();
    auto const samples = static_cast<double>(batch.data.size(0));
    return Loss{.value = at::full({}, samples), .weight = samples};
  };
  CHECK(frugal::detail::measure<list<>, frugal::OneProcess>(source, run.state, forward)["loss"] ==
        (9.0 + 4.0) / 5);
  CHECK(always);
  CHECK(run.module.is_training());
  CHECK((source.sought == std::vector<Cursor>{{5, 0, 0}}));
}

TEST_CASE("a source without a batch is an error that says which, and in which epoch") {
  SmallRun run;
  Stream empty;
  auto const forward = [](Batch const&) { return Loss{}; };
  auto const error = thrown_by<EmptySourceError>([&] {
    static_cast<void>(frugal::detail::measure<list<>, frugal::OneProcess>(
        empty, run.state, forward, {.which = "validation 'shifted'"}));
  });
  REQUIRE(error);
  CHECK(says(error->what(), "the validation 'shifted' source has no batch"));
  CHECK(says(error->what(), "epoch 3"));
}

TEST_CASE("a scalar with the name of a metric is an error before the first step, then advice") {
  Stream source{.batches = batches_of_sizes({3, 2})};
  // The metric finds every label; the scalar says 0.25.
  auto const forward = [](Batch const& batch) {
    return Loss{.value = at::zeros({}),
                .weight = 1,
                .output = at::one_hot(batch.target, 3).to(at::kFloat),
                .scalars = {{"penalty", 0.5}, {"accuracy", 0.25}}};
  };
  SmallRun run;
  auto const error = thrown_by<SettingsError>([&] {
    static_cast<void>(
        frugal::detail::measure<list<Accuracy>, frugal::OneProcess>(source, run.state, forward));
  });
  REQUIRE(error);
  CHECK(says(error->what(), "scalar 'accuracy' and the metric 'accuracy'"));
  CHECK(says(error->what(), "Loss::scalars"));
  CHECK(thrown_by<SettingsError>([&] {
    static_cast<void>(frugal::detail::measure<list<Accuracy>, frugal::OneProcess>(
        source, run.state, forward, {.batches = 1, .is_trial = true}));
  }));

  // In the middle of a run.
  Metrics const found = frugal::detail::measure<list<Accuracy>, frugal::OneProcess>(
      source, run.state, forward, {.errors = frugal::detail::MetricErrors::noted});
  CHECK(found["accuracy"] == 1);
  CHECK(found["penalty"] == 0.5);
  REQUIRE(run.state.observed.warnings().size() == 1);
  CHECK(says(run.state.observed.warnings()[0], "validation: "));
  CHECK(says(run.state.observed.warnings()[0], "scalar 'accuracy'"));
}

}  // namespace frugal_test::loop_measure
