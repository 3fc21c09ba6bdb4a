// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/accuracy.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/callback.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/validate.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/scripted.hpp"

namespace frugal_test::policy_callback {

using namespace frugal_test::support;
using frugal::flow;
using frugal::Optimize;
using frugal::SGD;
using frugal::TensorDataset;

TensorDataset data() { return TensorDataset(samples(16), {.batch = 4, .shuffle = true}); }

template <class... Ps>
frugal::Report fit(frugal::Settings const& settings, Ps const&... policies) {
  frugal::Trainer trainer{std::make_shared<Mlp>(Mlp::Shape{}), frugal::CrossEntropy{}, settings,
                          Optimize<SGD>{.lr = 0.1}, policies...};
  auto train = data();
  return trainer.fit(train, TensorDataset(samples(8, 5), {.batch = 4, .shuffle = false}));
}

TEST_CASE("functions are called after steps, validations and epochs, in the order of the recipe") {
  std::vector<std::string> seen;
  auto const report =
      fit(frugal::Settings{.epochs = 2},
          frugal::Validate<frugal::Every<1, frugal::Epoch>, frugal::Accuracy>{},
          frugal::on_step([&](frugal::Step& step) {
            seen.push_back("step " + std::to_string(step.counters().step));
          }),
          frugal::on_step([&](auto&) { seen.push_back("second"); }),
          frugal::on_validated([&](frugal::Validated& validated) {
            seen.push_back(validated.metrics.has("accuracy") ? "validated" : "no metric");
          }),
          frugal::on_epoch_end([&](auto& epoch) {
            seen.push_back("epoch " + std::to_string(epoch.counters().epoch));
          }));
  CHECK(report.epochs == 2);
  CHECK(seen == std::vector<std::string>{"step 1", "second", "step 2", "second",    "step 3",
                                         "second", "step 4", "second", "validated", "epoch 1",
                                         "step 5", "second", "step 6", "second",    "step 7",
                                         "second", "step 8", "second", "validated", "epoch 2"});
}

TEST_CASE("a function may end the run, which its name says") {
  auto const third = [](frugal::Step& step) {
    return step.counters().step == 3 ? flow::stop : flow::proceed;
  };
  auto const named = fit({.epochs = 2}, frugal::on_step<"third step">(third));
  CHECK(named.steps == 3);
  CHECK(named.stopped_by == "third step");
  auto const plain = fit({.epochs = 2}, frugal::on_step(third));
  CHECK(plain.steps == 3);
  CHECK(plain.stopped_by == "on_step");
}

/// Counts steps, over a resume.
struct Count {
  int steps = 0;
  std::vector<int>* seen = nullptr;
  void operator()(frugal::Step&) { seen->push_back(++steps); }
  template <class Archive>
  void persist(Archive& archive) {
    archive("steps", steps);
  }
};

TEST_CASE("a struct with persist is saved and resumed, and each fit has its own") {
  TemporaryFolder const folder;
  std::vector<int> seen;
  auto const run = [&](int epochs) {
    return fit({.run_dir = folder / "run", .epochs = epochs},
               frugal::Checkpoint<frugal::Every<1, frugal::Epoch>>{},
               frugal::on_step<"count">(Count{.seen = &seen}));
  };
  static_cast<void>(run(1));
  static_cast<void>(run(2));
  CHECK(seen == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8});
  auto const once = frugal::on_step<"count">(Count{.seen = &seen});
  seen.clear();
  static_cast<void>(fit({.epochs = 1}, once));
  static_cast<void>(fit({.epochs = 1}, once));
  CHECK(seen == std::vector<int>{1, 2, 3, 4, 1, 2, 3, 4});
}

TEST_CASE("a function is called for each checkpoint that is whole on disk") {
  auto const steps_of = [](auto const& checkpoint) {
    TemporaryFolder const folder;
    std::vector<std::uint64_t> steps;
    auto const report =
        fit({.run_dir = folder.path(), .epochs = 2}, checkpoint,
            frugal::on_checkpoint([&](frugal::Saved& saved) {
              CHECK(std::filesystem::is_regular_file(saved.folder / "manifest.json"));
              steps.push_back(saved.step);
            }));
    CHECK(report.steps == 8);
    return steps;
  };
  std::vector<std::uint64_t> const each{0, 3, 6, 8};
  CHECK(steps_of(frugal::Checkpoint<frugal::Every<3>, frugal::Keep<9>>{}) == each);
  CHECK(steps_of(frugal::Checkpoint<frugal::Every<3>, frugal::Keep<9>, frugal::Async>{}) == each);

  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(
      fit({.run_dir = folder.path(), .epochs = 1}, frugal::Checkpoint<frugal::Every<3>>{},
          frugal::on_checkpoint([](auto& saved) {
            if (saved.step == 3) throw std::runtime_error("upload failed");
          })),
      "upload failed", std::runtime_error);
}

TEST_CASE("an exception of a function ends the fit, and a callback without a function is refused") {
  CHECK_THROWS_WITH_AS(
      fit({.epochs = 1}, frugal::on_epoch_end([](auto&) { throw std::runtime_error("mine"); })),
      "mine", std::runtime_error);
  CHECK_THROWS_AS(fit({.epochs = 1}, frugal::Callback<frugal::on::step>{}), frugal::SettingsError);
  void (*const none)(frugal::Step&) = nullptr;
  CHECK_THROWS_AS(fit({.epochs = 1}, frugal::on_step(none)), frugal::SettingsError);
}

TEST_CASE("a run with callbacks has the bits of one without") {
  auto const weights = [](auto const&... policies) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{});
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 2},
                            Optimize<SGD>{.lr = 0.1},
                            frugal::Accumulate<2>{},
                            policies...};
    auto train = data();
    static_cast<void>(trainer.fit(train));
    return tensors_of(*module);
  };
  double sum = 0;
  CHECK(same_bits(weights(),
                  weights(frugal::on_step([&](frugal::Step& step) { sum += step.last_loss(); }))));
  CHECK(sum > 0);
}

TEST_CASE("weights are measured once, whoever asks, unless a callback says that it changed them") {
  bool changes = false;
  std::vector<flow> verdicts;
  auto const run = [&] {
    // At a rate of 0 only the first validation is an improvement.
    frugal::Trainer trainer{
        std::make_shared<Mlp>(Mlp::Shape{}),
        frugal::CrossEntropy{},
        frugal::Settings{.epochs = 3},
        Optimize<SGD>{.lr = 0},
        frugal::Validate<frugal::Every<2>>{},
        frugal::EarlyStop<frugal::Patience<3>>{},
        frugal::on_step([&](frugal::Step& step) {
          if (step.counters().step % 2 != 0) return;
          if (changes) step.run_state().observed.weights_have_changed();
          verdicts.push_back(step.validate());
        }),
        frugal::on_epoch_end([](frugal::EpochEnd& end) { return end.validate(); })};
    auto train = data();
    return trainer.fit(train, TensorDataset(samples(8, 5), {.batch = 4, .shuffle = false}));
  };
  auto const once = run();
  CHECK(once.steps == 8);
  CHECK(once.validations.size() == 4);
  CHECK((verdicts == std::vector{flow::proceed, flow::proceed, flow::proceed, flow::stop}));
  changes = true;
  auto const twice = run();
  CHECK(twice.steps == 4);
  CHECK(twice.validations.size() == 4);
}

TEST_CASE("EarlyStop ends a run by the validations of a callback that drops their verdict") {
  // At a rate of 0 only the first validation is an improvement.
  frugal::Trainer trainer{
      std::make_shared<Mlp>(Mlp::Shape{}),
      frugal::CrossEntropy{},
      frugal::Settings{.epochs = 3},
      Optimize<SGD>{.lr = 0},
      frugal::Validate<frugal::Every<2>>{.every = 100},
      frugal::EarlyStop<frugal::Patience<3>>{.patience = 2},
      frugal::on_step([](frugal::Step& step) { static_cast<void>(step.validate()); })};
  auto train = data();
  auto const report =
      trainer.fit(train, TensorDataset(samples(8, 5), {.batch = 4, .shuffle = false}));
  CHECK(report.steps == 3);
  CHECK(report.stopped_by == "EarlyStop");
}

}  // namespace frugal_test::policy_callback
