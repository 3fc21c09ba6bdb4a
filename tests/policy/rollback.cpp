// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/files.hpp"
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
  frugal::Resident train(data, {.batch = 4, .shuffle = false});
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
    CHECK(outcome.report.advice.size() == 3);  // one rollback per epoch
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
  CHECK(outcome.report.advice.size() == 2);
}

TEST_CASE("of the windows that overflow in FP16 and share a step, the bad one is skipped") {
  frugal::Precision<frugal::FP16> const half{.scaling = {.initial = 1e8}};
  Outcome const clean = run(without(8), {.epochs = 2}, {}, half);
  CHECK(clean.report.skipped > 3);
  CHECK(clean.report.steps > 3);
  Outcome const outcome =
      run(spoilt(not_a_number, 8), {.epochs = 2}, {}, half, Rollback<Every<1000>>{.slow_down = 1});
  CHECK(outcome.report.skipped == clean.report.skipped);
  CHECK(same_bits(outcome.tensors, clean.tensors));
}

TEST_CASE("so it does with windows of several micro-batches, clipping and a schedule") {
  using namespace frugal::literals;
  auto const train = [](frugal::Batch const& data) {
    return run(data, {.epochs = 2}, Mlp::Shape{}, frugal::Accumulate<2>{},
               frugal::ClipNorm<0.1_r>{}, frugal::Schedule<frugal::Warmup<4>>{},
               Rollback<Every<3>>{.slow_down = 1});
  };
  CHECK(same_bits(train(spoilt(not_a_number, 20, 2)).tensors, train(without(16, 8)).tensors));
}

TEST_CASE("each rollback lowers the learning rate, and is in the log and the advice") {
  TemporaryFolder const folder;
  Outcome const outcome = run(spoilt(not_a_number), {.run = folder.path(), .epochs = 2}, {},
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
  REQUIRE(outcome.report.advice.size() == 2);
  CHECK(outcome.report.advice[0].find("at step 5 the loss was nan: back to step 4") == 0);
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
  CHECK(outcome.report.advice.size() == 2);
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
  CHECK(run(bad, {.epochs = 1}, {}, Rollback<Every<1>>{.jump = 20}).report.advice.empty());
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

  template <class Context>
  struct State {
    using transient = void;
    std::uint64_t at;
    explicit State(Landlord const& settings) : at(settings.at) {}
    void on_step(frugal::Step<Context>& phase) {
      if (phase.counters().micro_batch == at) ::raise(SIGTERM);
    }
  };
};

TEST_CASE("preempted at any step, the resumed run goes back as far as an uninterrupted one") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::uint64_t at) {
    return run(spoilt(not_a_number), {.run = folder / name, .epochs = 2},
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

}  // namespace frugal_test::policy_rollback
