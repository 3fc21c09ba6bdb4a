// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/frugal.hpp>
#include <frugal/policy/rollback.hpp>

#include "support/files.hpp"
#include "support/non_finite.hpp"
#include "support/running.hpp"

#include <signal.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::policy_rollback {

using namespace support;
using frugal::Every;
using frugal::Rollback;
using Optimizer = frugal::Optimize<frugal::AdamW>;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// 44 samples in windows of 4; `count` of them, from `first` on, are bad.
frugal::Batch spoilt(float with, std::int64_t first = 20, std::int64_t count = 4) {
  frugal::Batch all = samples(44);
  all.data = all.data.clone();
  all.data.narrow(0, first, count).fill_(with);
  return all;
}

/// The same without these samples.
frugal::Batch without(std::int64_t first = 20, std::int64_t count = 4) {
  frugal::Batch const all = samples(44);
  auto const cut = [&](at::Tensor const& tensor) {
    return at::cat({tensor.narrow(0, 0, first),
                    tensor.narrow(0, first + count, tensor.size(0) - first - count)});
  };
  return {cut(all.data), cut(all.target)};
}

struct Outcome {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  std::vector<double> losses;
};

template <class... Ps>
Outcome run(frugal::Batch const& data, frugal::Settings const& settings, Mlp::Shape const& shape,
            Ps const&... policies) {
  Outcome outcome;
  Seen seen;
  auto const module = std::make_shared<Mlp>(shape);
  frugal::Trainer trainer{module,      frugal::CrossEntropy{}, settings, Optimizer{},
                          policies..., Spy{.seen = &seen}};
  frugal::TensorDataset train(data, {.batch = 4, .shuffle = false});
  outcome.report = trainer.fit(train);
  outcome.tensors = tensors_of(*module);
  outcome.losses = seen.losses;
  return outcome;
}

TEST_CASE("the run continues as if the window with the bad loss did not exist") {
  // With random numbers and buffers, which must be restored too.
  Mlp::Shape const shape{.dropout = 0.3, .norm = true};
  Outcome const clean = run(without(), {.epochs = 3}, shape);
  // With the state kept at every step, or long before, across epochs.
  Outcome const near =
      run(spoilt(not_a_number), {.epochs = 3}, shape, Rollback<Every<1>>{.slow_down = 1});
  CHECK(same_bits(near.tensors, clean.tensors));
  CHECK(near.report.steps == clean.report.steps);
  Outcome const far =
      run(spoilt(not_a_number), {.epochs = 3}, shape, Rollback<Every<1000>>{.slow_down = 1});
  CHECK(same_bits(far.tensors, clean.tensors));
  CHECK(far.report.steps == clean.report.steps);
  CHECK(far.losses.size() > near.losses.size());
}

TEST_CASE("a bad window that is the first of an epoch is skipped, and no other") {
  Outcome const clean = run(without(0), {.epochs = 3}, {.dropout = 0.3});
  auto const check = [&](auto policy) {
    Outcome const outcome = run(spoilt(not_a_number, 0), {.epochs = 3}, {.dropout = 0.3}, policy);
    CHECK(same_bits(outcome.tensors, clean.tensors));
    CHECK(outcome.report.steps == clean.report.steps);
    CHECK(outcome.report.epochs == 3);
    CHECK(outcome.report.warnings.size() == 3);  // one rollback per epoch
  };
  check(Rollback<Every<1>>{.slow_down = 1});
  check(Rollback<Every<1000>>{.slow_down = 1});
}

TEST_CASE("an epoch whose only window is skipped is an epoch") {
  frugal::Batch bad = samples(4);
  bad.data = at::full_like(bad.data, not_a_number);
  Outcome const outcome = run(bad, {.epochs = 2}, {}, Rollback<Every<1>>{});
  CHECK(outcome.report.epochs == 2);
  CHECK(outcome.report.steps == 0);
  CHECK(outcome.report.warnings.size() == 2);
}

TEST_CASE("FP16 skips a window with a bad loss as one that overflows, and nothing is rolled back") {
  frugal::Precision<frugal::FP16> const half{.scaling = {.initial = 1e8}};
  Outcome const clean = run(without(8), {.epochs = 2}, {}, half);
  CHECK(clean.report.non_finite_windows > 3);
  CHECK(clean.report.steps > 3);
  Outcome const outcome =
      run(spoilt(not_a_number, 8), {.epochs = 2}, {}, half, Rollback<Every<1000>>{.jump = 20});
  // The first bad window takes the place of one that would overflow, and the second is one more.
  CHECK(outcome.report.non_finite_windows == clean.report.non_finite_windows + 1);
  CHECK(outcome.report.steps == clean.report.steps + 1);
  CHECK(outcome.report.warnings == clean.report.warnings);
}

TEST_CASE("a loss that is not finite, and whose window is skipped, is not in the mean of a jump") {
  frugal::Batch bad = samples(100);
  bad.data = bad.data.clone();
  bad.data.narrow(0, 4, 4).fill_(not_a_number);
  auto const trained = [&] {
    return run(bad, {.epochs = 2}, {}, frugal::SkipNonFinite{},
               Rollback<Every<1000>>{.jump = 20, .at_most = 1});
  };
  CHECK(trained().report.non_finite_windows == 2);
  bad.data.narrow(0, 88, 4).mul_(-1000);  // a jump is found all the same
  CHECK_THROWS_AS(trained(), frugal::LossJumpError);
}

/// The weights after three epochs, and the advice.
template <class Objective, class Module, class... Ps>
Outcome train(Objective const& objective, std::shared_ptr<Module> module, frugal::Batch const& data,
              Ps const&... policies) {
  frugal::Trainer trainer{module, objective, frugal::Settings{.epochs = 3}, policies...};
  frugal::TensorDataset source(data, {.batch = 4, .shuffle = false});
  Outcome outcome;
  outcome.report = trainer.fit(source);
  outcome.tensors = tensors_of(*module);
  return outcome;
}

template <class Cadence, class... Ps>
void passes_over_a_bad_gradient(Ps const&... policies) {
  auto const mlp = [] { return std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3}); };
  frugal::Batch const bad = marked(44, 20, 4);
  Outcome const clean =
      train(Rooted{}, mlp(), support::without(bad, 20, 4), Optimizer{}, policies...);
  Outcome const outcome =
      train(Rooted{}, mlp(), bad, Optimizer{}, Rollback<Cadence>{.slow_down = 1}, policies...);
  CHECK(same_bits(outcome.tensors, clean.tensors));
  CHECK(outcome.report.steps == clean.report.steps);
}

TEST_CASE("a window with a finite loss and a NaN gradient is passed over, and no other") {
  passes_over_a_bad_gradient<Every<1>>();     // seen before the state is kept
  passes_over_a_bad_gradient<Every<3>>();     // likewise, of three windows
  passes_over_a_bad_gradient<Every<1000>>();  // seen by the loss of the next window
}

TEST_CASE("the same if ClipNorm sees the gradient before the update") {
  passes_over_a_bad_gradient<Every<1000>>(frugal::ClipNorm<100.0>{});
}

TEST_CASE("a return that looks for a window counts once, and lowers the rate once") {
  auto const trained = [](int at_most) {
    return train(Rooted{}, std::make_shared<Mlp>(), marked(44, 20, 4), Optimizer{},
                 Rollback<Every<1000>>{.at_most = at_most});
  };
  std::vector<std::string> const advice = trained(3).report.warnings;
  REQUIRE(advice.size() == 6);
  // The next window's loss is NaN, and then the window itself is found.
  CHECK(advice[0] ==
        "at step 6 the loss was nan: back to step 0, that window is passed over, learning rate "
        "times 0.5");
  CHECK(advice[1] ==
        "at step 5 the weights are not finite: back to step 0, that window is passed over, "
        "learning rate times 0.5");
  CHECK(advice[5].ends_with("learning rate times 0.125"));
  CHECK_THROWS_AS(trained(2), frugal::NonFiniteLossError);
}

TEST_CASE("a NaN in a rare row, which no loss ever sees, is not kept: its window is passed over") {
  auto const rows = [] { return std::make_shared<Rows>(); };
  auto const sgd = frugal::Optimize<frugal::SGD>{.lr = 0.1};
  frugal::Batch const bad = rows_of(5);
  frugal::Batch const good = support::without(bad, 20, 4);
  Outcome const outcome = train(RareRow{}, rows(), bad, sgd, Rollback<Every<4>>{.slow_down = 1});
  CHECK(same_bits(outcome.tensors, train(RareRow{}, rows(), good, sgd).tensors));
  CHECK(outcome.report.steps == 27);
  REQUIRE(outcome.report.warnings.size() == 6);
  CHECK(outcome.report.warnings[0] ==
        "at step 7 the weights are not finite: back to step 4, to find the window that did it, "
        "learning rate times 1");
}

TEST_CASE("an infinite moment with finite weights is not kept either") {
  frugal::Batch const bad = marked(44, 20, 4);
  auto const mlp = [] { return std::make_shared<Mlp>(); };
  Outcome const clean = train(Huge{}, mlp(), support::without(bad, 20, 4), Optimizer{});
  Outcome const outcome =
      train(Huge{}, mlp(), bad, Optimizer{}, Rollback<Every<4>>{.slow_down = 1});
  CHECK(same_bits(outcome.tensors, clean.tensors));
  CHECK(outcome.report.warnings.size() == 6);
}

TEST_CASE("a module whose weights are not finite is refused before the first step") {
  auto const module = std::make_shared<Rows>();
  {
    torch::NoGradGuard const no_gradients;
    module->table->weight[3][1] = not_a_number;
  }
  CHECK_THROWS_WITH_AS(train(RareRow{}, module, rows_of(-1), Optimizer{}, Rollback<Every<4>>{}),
                       doctest::Contains("tensor 'table.weight', step 0"),
                       frugal::NonFiniteWeightsError);
}

/// Cross-entropy less 10.
struct Negative {
  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    loss.value = loss.value - 10;
    return loss;
  }
};

TEST_CASE("a negative loss is no jump, and one far above negative losses is") {
  Rollback<Every<1>> const watchful{.jump = 3};
  auto const mlp = [] { return std::make_shared<Mlp>(); };
  CHECK(train(Negative{}, mlp(), samples(44), Optimizer{}, watchful).report.warnings.empty());
  frugal::Batch bad = samples(100);
  bad.data = bad.data.clone();
  bad.data.narrow(0, 88, 4).mul_(-1000);
  CHECK(train(Negative{}, mlp(), bad, Optimizer{}, watchful).report.warnings.size() == 3);
}

/// A loss of 1; with a mark one of 0 over nothing.
struct HalfMasked {
  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    bool const counts = batch.data.max().item<float>() < mark;
    at::Tensor const loss = module->forward(batch.data).sum() * 0 + (counts ? 1 : 0);
    return {.value = loss, .weight = counts ? 4.0 : 0.0};
  }
};

TEST_CASE("a micro-batch of weight 0 is not in the mean of a jump") {
  frugal::Batch data = samples(80);
  data.data = data.data.clone();
  for (std::int64_t i = 4; i < 80; i += 8) data.data.narrow(0, i, 4).fill_(mark);
  Outcome const outcome = train(HalfMasked{}, std::make_shared<Mlp>(), data, Optimizer{},
                                frugal::Accumulate<2>{}, Rollback<Every<1>>{.jump = 1.5});
  CHECK(outcome.report.warnings.empty());
}

TEST_CASE("so it does with windows of several micro-batches, clipping and a schedule") {
  auto const train = [](frugal::Batch const& data) {
    return run(data, {.epochs = 2}, Mlp::Shape{}, frugal::Accumulate<2>{}, frugal::ClipNorm<0.1>{},
               frugal::Schedule<frugal::Warmup<4>>{}, Rollback<Every<3>>{.slow_down = 1});
  };
  CHECK(same_bits(train(spoilt(not_a_number, 20, 2)).tensors, train(without(16, 8)).tensors));
}

TEST_CASE("each rollback lowers the learning rate, and is in the log and the advice") {
  TemporaryFolder const folder;
  Outcome const outcome = run(spoilt(not_a_number), {.run_dir = folder.path(), .epochs = 2}, {},
                              Rollback<Every<2>>{}, frugal::Log<Every<1>>{});
  std::vector<nlohmann::json> returns;
  double factor = 0;
  for (auto const& text : lines_of(text_of(folder / "metrics.jsonl"))) {
    auto const line = nlohmann::json::parse(text);
    if (line.at("event") == "rollback") returns.push_back(line);
    if (line.at("event") == "step") factor = line.at("lr_factor");
  }
  REQUIRE(returns.size() == 2);
  CHECK(returns[0].at("step") == 4);
  CHECK(returns[0].at("from_step") == 5);
  CHECK(returns[0].at("loss").is_null());
  CHECK(returns[0].at("learning_rate_scale") == 0.5);
  CHECK(returns[1].at("learning_rate_scale") == 0.25);
  CHECK(factor == 0.25);
  REQUIRE(outcome.report.warnings.size() == 2);
  CHECK(outcome.report.warnings[0].find("at step 5 the loss was nan: back to step 4") == 0);
}

TEST_CASE("after the limit of rollbacks the error reaches the user") {
  CHECK_THROWS_AS(run(spoilt(not_a_number), {.epochs = 3}, {}, Rollback<Every<2>>{.at_most = 2}),
                  frugal::NonFiniteLossError);
  CHECK_NOTHROW(run(spoilt(not_a_number), {.epochs = 3}, {}, Rollback<Every<2>>{.at_most = 3}));
}

TEST_CASE("a loss that jumps is skipped like one that is not finite") {
  frugal::Batch const good = samples(100);
  frugal::Batch bad = good;
  bad.data = good.data.clone();
  bad.data.narrow(0, 88, 4).mul_(-1000);  // an outlier, on the wrong side of the rule
  frugal::Batch const cut{at::cat({good.data.narrow(0, 0, 88), good.data.narrow(0, 92, 8)}),
                          at::cat({good.target.narrow(0, 0, 88), good.target.narrow(0, 92, 8)})};
  Rollback<Every<1>> const watchful{.jump = 20, .slow_down = 1};
  Outcome const clean = run(cut, {.epochs = 2}, {});
  Outcome const outcome = run(bad, {.epochs = 2}, {}, watchful);
  CHECK(same_bits(outcome.tensors, clean.tensors));
  CHECK(outcome.report.warnings.size() == 2);
  try {
    run(bad, {.epochs = 2}, {}, Rollback<Every<1>>{.jump = 20, .at_most = 1});
    FAIL("nothing was thrown");
  } catch (frugal::LossJumpError const& error) {
    CHECK(error.loss > 20);
    CHECK(error.fault().where.find("epoch 1, step 46") == 0);
  }
}

TEST_CASE("a jump among the first losses does not count: their variation is not known yet") {
  frugal::Batch bad = samples(44);
  bad.data = bad.data.clone();
  bad.data.narrow(0, 40, 4).mul_(-1000);
  CHECK(run(bad, {.epochs = 1}, {}, Rollback<Every<1>>{.jump = 20}).report.warnings.empty());
}

TEST_CASE("a run without a bad loss is the same with Rollback and without") {
  Mlp::Shape const shape{.dropout = 0.3, .norm = true};
  Outcome const with = run(samples(44), {.epochs = 3}, shape, Rollback<Every<3>>{.jump = 1000});
  Outcome const without_it = run(samples(44), {.epochs = 3}, shape);
  CHECK(same_bits(with.tensors, without_it.tensors));
  CHECK(with.losses == without_it.losses);
}

/// Requests a preemption after a step.
struct Landlord {
  using kind = support::kinds::restore;
  using listens = frugal::list<frugal::on::step>;
  std::uint64_t at = 0;

  struct State {
    using transient = void;
    std::uint64_t at;
    explicit State(Landlord const& settings) : at(settings.at) {}
    void on_step(frugal::Step& phase) {
      if (phase.counters().micro_batch == at) ::raise(SIGTERM);
    }
  };
};

TEST_CASE("preempted at any step, the resumed run goes back as far as an uninterrupted one") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::uint64_t at) {
    return run(spoilt(not_a_number), {.run_dir = folder / name, .epochs = 2},
               {.dropout = 0.3, .norm = true}, Rollback<Every<4>>{}, frugal::Checkpoint<Every<3>>{},
               frugal::Spot<frugal::SigtermSave>{}, Landlord{.at = at});
  };
  Outcome const whole = start("whole", 0);
  CHECK(whole.report.steps == 20);
  for (std::uint64_t at = 1; at <= 22; ++at) {
    CAPTURE(at);
    std::string const name = std::to_string(at);
    start(name, at);
    Outcome const resumed = start(name, 0);
    CHECK(same_bits(resumed.tensors, whole.tensors));
    CHECK(resumed.report.steps == whole.report.steps);
    CHECK(resumed.report.train_loss == whole.report.train_loss);
  }
}

TEST_CASE("Rollback refuses invalid settings") {
  for (Rollback<> const& bad :
       {Rollback<>{.jump = 0.5}, Rollback<>{.jump = -1}, Rollback<>{.slow_down = 0},
        Rollback<>{.slow_down = 2}, Rollback<>{.at_most = 0}}) {
    CHECK_THROWS_AS(run(samples(8), {.epochs = 1}, {}, bad), frugal::SettingsError);
  }
}

using frugal::LossError;
using frugal::detail::BadWindows;

TEST_CASE("a window is known by its epoch and position") {
  BadWindows bad;
  bad.add(1, 8);
  CHECK(bad.has(1, 8));
  CHECK_FALSE(bad.has(0, 8));
  CHECK_FALSE(bad.has(1, 4));
}

TEST_CASE("a search ends at its step, and the suspect is what is left") {
  BadWindows bad;
  bad.search({.epoch = 0, .position = 8, .step = 2}, 2);
  CHECK(bad.has(0, 8));
  bad.cleared(1);
  CHECK(bad.searching());
  bad.cleared(2);
  CHECK_FALSE(bad.searching());
  CHECK(bad.has(0, 8));
}

TEST_CASE("if another window is found, the suspect is innocent") {
  BadWindows bad;
  bad.search({.epoch = 0, .position = 8, .step = 2}, 2);
  bad.found({.epoch = 0, .position = 4, .step = 1});
  CHECK_FALSE(bad.searching());
  CHECK(bad.has(0, 4));
  CHECK_FALSE(bad.has(0, 8));
}

TEST_CASE("a search without a suspect passes over nothing") {
  BadWindows bad;
  bad.search({.epoch = 0, .position = LossError::Window::elsewhere, .step = 2}, 2);
  CHECK_FALSE(bad.has(0, LossError::Window::elsewhere));
  bad.cleared(2);
  CHECK_FALSE(bad.has(0, LossError::Window::elsewhere));
}

TEST_CASE("windows and a search are saved and loaded, and a loaded state has no others") {
  auto const loaded = [](BadWindows saved) {
    frugal::StateDict memory;
    frugal::StateWriter writer(memory);
    saved.persist(writer);
    BadWindows bad;
    bad.add(9, 9);
    bad.search({.epoch = 9, .position = 12, .step = 9}, 9);
    frugal::StateReader reader(memory);
    bad.persist(reader);
    CHECK_FALSE(reader.unread());
    return bad;
  };
  BadWindows bad;
  bad.add(1, 8);
  CHECK(loaded(bad).has(1, 8));
  CHECK_FALSE(loaded(bad).has(9, 9));
  CHECK_FALSE(loaded(bad).searching());
  CHECK_FALSE(loaded(bad).has(9, 12));
  bad.search({.epoch = 1, .position = 16, .step = 6}, 6);
  CHECK(loaded(bad).searching());
  CHECK(loaded(bad).has(1, 16));
  BadWindows ended = loaded(bad);
  ended.cleared(6);
  CHECK_FALSE(ended.searching());
}

}  // namespace frugal_test::policy_rollback
