// SPDX-License-Identifier: Apache-2.0
#include <frugal/policy/importance.hpp>

#include <doctest/doctest.h>

#include <frugal/data/pad.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/find_learning_rate.hpp>
#include <frugal/trainer.hpp>

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "support/locales.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_importance {

using namespace frugal;
using namespace frugal_test::support;

constexpr std::int64_t n = 20;

/// A regression whose later samples lie further from the line.
struct Noisy {
  std::uint64_t size() const { return n; }
  std::pair<at::Tensor, at::Tensor> get(std::uint64_t i) const {
    auto const x = static_cast<double>(i) / n;
    double const y = 2 * x + (i % 2 == 0 ? 1 : -1) * x * x * 3;
    return {at::full({1}, x, at::kDouble), at::full({1}, y, at::kDouble)};
  }
};

torch::nn::Linear line() {
  torch::manual_seed(3);
  torch::nn::Linear module(1, 1);
  module->to(torch::kDouble);
  return module;
}

/// A table of the losses of a module on every sample, whose epoch 1 has begun.
std::pair<Importance<By<Loss>>, at::Tensor> measured(torch::nn::Linear& module, double uniform) {
  Importance<By<Loss>> importance(n, uniform);
  auto table = importance.objective(MeanSquaredError{}).table;
  table->begin(0);
  std::vector<at::Tensor> x, y;
  for (std::uint64_t i = 0; i < n; ++i) {
    x.push_back(Noisy{}.get(i).first);
    y.push_back(Noisy{}.get(i).second);
  }
  Batch const all{at::stack(x), at::stack(y)};
  at::Tensor const losses = sample_losses(MeanSquaredError{}, module, all).losses_B.detach();
  table->record(at::arange(n), losses);
  table->begin(1);
  return {importance, losses};
}

TEST_CASE("a sample is drawn in proportion to its loss, and by a share regardless of it") {
  auto module = line();
  auto const [importance, losses] = measured(module, 0.25);
  auto const& table = *importance.table();
  double const sum = losses.to(at::kFloat).to(at::kDouble).sum().item<double>();
  double all = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    double const loss = static_cast<float>(losses[static_cast<std::int64_t>(i)].item<double>());
    CHECK(table.probability(i) == doctest::Approx(0.25 / n + 0.75 * loss / sum).epsilon(1e-12));
    CHECK(table.weight(i) == doctest::Approx(1 / (n * table.probability(i))).epsilon(1e-6));
    CHECK(table.weight(i) <= 1 / 0.25 + 1e-6);
    all += table.probability(i);
  }
  CHECK(all == doctest::Approx(1).epsilon(1e-12));
}

/// The loss and its gradient for one drawn sample, as the objective gives them.
std::pair<at::Tensor, at::Tensor> drawn(Importance<By<Loss>> const& importance,
                                        torch::nn::Linear& module, std::uint64_t i) {
  auto objective = importance.objective(MeanSquaredError{});
  CollateByImportance<Stack> const collate{{}, objective.table};
  std::size_t const numbers[] = {i};
  auto const batch = collate(std::vector{Noisy{}.get(i)}, numbers);
  Loss const loss = objective(*module, batch);
  auto const gradients = torch::autograd::grad({loss.value}, {module->weight, module->bias});
  return {loss.value.detach(), at::cat({gradients[0].flatten(), gradients[1]})};
}

/// The mean loss over the set and its gradient.
std::pair<at::Tensor, at::Tensor> uniform_mean(torch::nn::Linear& module) {
  std::vector<at::Tensor> x, y;
  for (std::uint64_t i = 0; i < n; ++i) {
    x.push_back(Noisy{}.get(i).first);
    y.push_back(Noisy{}.get(i).second);
  }
  at::Tensor const loss = at::mse_loss(module->forward(at::stack(x)), at::stack(y));
  auto const gradients = torch::autograd::grad({loss}, {module->weight, module->bias});
  return {loss.detach(), at::cat({gradients[0].flatten(), gradients[1]})};
}

TEST_CASE("in expectation loss and gradient are those of uniform sampling") {
  auto module = line();
  auto const importance = measured(module, 0.2).first;
  at::Tensor loss = at::zeros({}, at::kDouble);
  at::Tensor gradient = at::zeros({2}, at::kDouble);
  for (std::uint64_t i = 0; i < n; ++i) {
    auto const [value, of] = drawn(importance, module, i);
    loss += importance.table()->probability(i) * value;
    gradient += importance.table()->probability(i) * of;
  }
  auto const [expected, slope] = uniform_mean(module);
  // The weights are float32.
  CHECK(at::allclose(loss, expected, 1e-6, 1e-9));
  CHECK(at::allclose(gradient, slope, 1e-6, 1e-9));
}

TEST_CASE("what is drawn estimates the mean, with less variance than uniform draws") {
  auto module = line();
  auto const [importance, losses] = measured(module, 0.2);
  constexpr std::int64_t draws = 20'000;
  double sum = 0, squares = 0;
  for (std::uint64_t place = 0; place < draws; ++place) {
    std::uint64_t const i = importance.table()->draw({.index = place, .seed = 1, .epoch = 1});
    double const value =
        importance.table()->weight(i) * losses[static_cast<std::int64_t>(i)].item<double>();
    sum += value;
    squares += value * value;
  }
  double const mean = sum / draws;
  double const variance = squares / draws - mean * mean;
  double const expected = losses.mean().item<double>();
  CHECK(std::abs(mean - expected) < 4 * std::sqrt(variance / draws));
  CHECK(variance < losses.var(/*unbiased=*/false).item<double>());
}

TEST_CASE("the first epoch is uniform, and a sample that was never drawn counts as mean") {
  Importance<By<Loss>> importance(4, 0.5);
  auto const table = importance.objective(MeanSquaredError{}).table;
  table->begin(0);
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(table->probability(i) == 0.25);
  table->record(at::tensor({0, 1}), at::tensor({1.0F, 3.0F}));
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(table->probability(i) == 0.25);  // until the next
  table->begin(1);
  CHECK(table->probability(0) == 0.5 / 4 + 0.5 * 1 / 8);
  CHECK(table->probability(1) == 0.5 / 4 + 0.5 * 3 / 8);
  CHECK(table->probability(2) == 0.5 / 4 + 0.5 * 2 / 8);
  table->begin(1);  // again: nothing changes
  CHECK(table->probability(3) == 0.5 / 4 + 0.5 * 2 / 8);
}

TEST_CASE("negative and infinite losses draw nothing more, and losses of 0 draw uniformly") {
  Importance<By<Loss>> importance(3, 0.2);
  auto const table = importance.objective(MeanSquaredError{}).table;
  table->begin(0);
  table->record(at::tensor({0, 1, 2}), at::tensor({-5.0F, 2.0F, INFINITY}));
  table->begin(1);
  CHECK(table->probability(0) == doctest::Approx(0.2 / 3));
  CHECK(table->probability(2) == doctest::Approx(0.2 / 3 + 0.8 * 1 / 3));
  table->record(at::tensor({0, 1, 2}), at::zeros({3}));
  table->begin(2);
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(table->probability(i) == doctest::Approx(1.0 / 3));
}

TEST_CASE("a sample's cross entropy is that of a batch of it alone") {
  torch::manual_seed(0);
  torch::nn::Linear module(3, 5);
  Batch const rows{torch::randn({4, 3}), at::tensor({0, 4, -100, 2}, at::kLong)};
  auto const losses = sample_losses(CrossEntropy{.label_smoothing = 0.1}, *module, rows).losses_B;
  for (std::int64_t i = 0; i < 4; ++i) {
    Batch const one{rows.data.narrow(0, i, 1), rows.target.narrow(0, i, 1)};
    auto const alone = CrossEntropy{.label_smoothing = 0.1}(*module, one).value;
    CHECK(at::allclose(losses[i], alone, 1e-6, 1e-7));
  }
  // Positions: [B, C, T] logits, [B, T] labels.
  torch::nn::Conv1d wide(torch::nn::Conv1dOptions(2, 5, 1));
  Batch const series{
      torch::randn({3, 2, 4}),
      at::tensor({0, 1, -100, -100, 2, 3, 4, 0, -100, -100, -100, -100}, at::kLong).view({3, 4})};
  auto const of_series = sample_losses(CrossEntropy{}, *wide, series).losses_B;
  for (std::int64_t i = 0; i < 3; ++i) {
    Batch const one{series.data.narrow(0, i, 1), series.target.narrow(0, i, 1)};
    CHECK(at::allclose(of_series[i], CrossEntropy{}(*wide, one).value, 1e-6, 1e-7));
  }
}

/// Gives what it gets.
struct SameImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return x; }
};
TORCH_MODULE(Same);

TEST_CASE("a sample's squared error is that of a batch of it alone: plain, wide and padded") {
  Same module;
  Batch const numbers{torch::randn({4}), torch::randn({4})};
  CHECK(at::allclose(sample_losses(MeanSquaredError{}, *module, numbers).losses_B,
                     (numbers.data - numbers.target).square()));
  Batch const wide{torch::randn({4, 3, 2}), torch::randn({4, 3, 2})};
  CHECK(at::allclose(sample_losses(MeanSquaredError{}, *module, wide).losses_B,
                     (wide.data - wide.target).square().mean({1, 2})));
  std::vector<Batch> ragged;
  for (std::int64_t const length : {2, 5, 3}) {
    ragged.push_back({torch::randn({length, 2}), torch::randn({length, 2})});
  }
  auto const padded = Pad{}(ragged);
  auto const losses = sample_losses(MeanSquaredError{}, *module, padded).losses_B;
  for (std::size_t i = 0; i < ragged.size(); ++i) {
    CHECK(at::allclose(losses[static_cast<std::int64_t>(i)],
                       MeanSquaredError{}(*module, ragged[i]).value));
  }
}

TEST_CASE("a prediction that would be broadcast is refused, as without Importance") {
  Same module;
  Batch const batch{torch::randn({4, 1}), torch::randn({4})};
  CHECK_THROWS_AS(sample_losses(MeanSquaredError{}, *module, batch), ShapeError);
  Batch const labels{torch::randn({4, 3}), torch::zeros({3}, at::kLong)};
  CHECK_THROWS_AS(sample_losses(CrossEntropy{}, *module, labels), ShapeError);
}

TEST_CASE("a sample's cross entropy over class probabilities is the mean over its positions") {
  Same module;
  Batch const soft{torch::randn({3, 5, 4}), torch::rand({3, 5, 4}).softmax(1)};
  auto const losses = sample_losses(CrossEntropy{}, *module, soft).losses_B;
  for (std::int64_t i = 0; i < 3; ++i) {
    Batch const one{soft.data.narrow(0, i, 1), soft.target.narrow(0, i, 1)};
    CHECK(at::allclose(losses[i], CrossEntropy{}(*module, one).value));
  }
}

TEST_CASE("L1 and Huber have the loss of each sample too, and class weights are refused") {
  auto const module = std::make_shared<Mlp>();
  Batch const numbers{samples(5).data, at::zeros({5, 3})};
  at::Tensor const errors_BC = module->forward(numbers.data).abs();
  CHECK(at::allclose(sample_losses(L1{}, *module, numbers).losses_B, errors_BC.mean(1)));
  CHECK(at::allclose(sample_losses(Huber{.delta = 100}, *module, numbers).losses_B,
                     errors_BC.square().mean(1) / 2));
  CrossEntropy const weighted{.class_weights = {1.0, 2.0, 3.0}};
  CHECK_THROWS_AS(sample_losses(weighted, *module, samples(5)), SettingsError);
}

TEST_CASE("a source that was never sought is at its beginning") {
  Importance<By<Loss>> const importance(n);
  auto source = importance.source(Noisy{}, {.batch = 5}, {}, {.workers = 0});
  auto const first = source.next();
  REQUIRE(first);
  CHECK(first->index_B.numel() == 5);
  source.seek({});
  CHECK(at::equal(source.next()->index_B, first->index_B));
}

TEST_CASE("a collate function that takes keys serves, as one of random transforms of a batch") {
  auto const collate = [](std::vector<std::pair<at::Tensor, at::Tensor>> const& samples,
                          std::span<SampleKey const> keys) {
    REQUIRE(samples.size() == keys.size());
    at::Tensor numbers = at::empty({static_cast<std::int64_t>(keys.size())}, at::kLong);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      numbers[static_cast<std::int64_t>(i)] = static_cast<std::int64_t>(keys[i].index);
    }
    return numbers;
  };
  Importance<By<Loss>> const importance(n);
  auto source = importance.source(Noisy{}, {.batch = 5}, collate, {.workers = 2});
  while (auto const batch = source.next()) CHECK(at::equal(batch->batch, batch->index_B));
}

TEST_CASE("a worker's draws stay while a seek begins another epoch") {
  Importance<By<Loss>> const importance(4, 0.5);
  auto const table = importance.objective(MeanSquaredError{}).table;
  table->begin(0);
  auto const draws = table->draws();
  table->record(at::tensor({0, 1}), at::tensor({1.0F, 3.0F}));
  table->begin(1);
  CHECK(table->probability(0) != 0.25);
  CHECK(draws->probabilities == std::vector<double>(4, 0.25));
  CHECK(draws->weights == std::vector<float>(4, 1));
}

struct Ended {
  at::Tensor weight;
  std::map<std::uint64_t, Frozen> saved;
};

Ended train(Frozen const* from, std::uint64_t stop_at) {
  Ended ended;
  auto module = line();
  Importance<By<Loss>> const importance(n);
  auto source = importance.source(Noisy{}, {.batch = 6}, {}, {.workers = 2});
  Resume resume{.from = from, .after_step = &ended.saved};
  resume.stop_at = stop_at;
  Trainer trainer{module,
                  importance.objective(MeanSquaredError{}),
                  Settings{.epochs = 4, .seed = 8},
                  Optimize<SGD>{.lr = 0.2},
                  importance,
                  resume};
  static_cast<void>(trainer.fit(source));
  ended.weight = module->weight.detach().clone();
  return ended;
}

TEST_CASE("a run resumed anywhere draws the same samples and ends with the same bits") {
  Ended const whole = train(nullptr, 1000);
  CHECK(whole.saved.size() == 16);  // 4 epochs of 20 samples in batches of 6
  for (std::uint64_t const step : {1U, 4U, 5U, 7U, 8U, 11U, 15U}) {
    CAPTURE(step);
    Ended const half = train(nullptr, step);
    Ended const rest = train(&half.saved.at(step), 1000);
    CHECK(at::equal(rest.weight, whole.weight));
  }
  Ended const twice = train(&train(&train(nullptr, 3).saved.at(3), 9).saved.at(9), 1000);
  CHECK(at::equal(twice.weight, whole.weight));
}

TEST_CASE("a validation measures the objective itself, and keeps no loss") {
  auto module = line();
  Importance<By<Loss>> const importance(n);
  auto objective = importance.objective(MeanSquaredError{});
  Batch const batch{Noisy{}.get(3).first.view({1, 1}), Noisy{}.get(3).second.view({1, 1})};
  CHECK(at::equal(objective(*module, batch).value, MeanSquaredError{}(*module, batch).value));
}

TEST_CASE("losses do not pile up within an epoch, and the last of each sample counts") {
  ImportanceTable table(4, 0.5);
  for (std::size_t i = 1; i <= 3 * ImportanceTable::most_waiting; ++i) {
    table.record(at::tensor({1}), at::full({1}, static_cast<double>(i)));
    CHECK(table.waiting() < ImportanceTable::most_waiting);
  }
  table.record(at::tensor({1}), at::tensor({3.0F}));
  table.record(at::tensor({0, 2, 3}), at::tensor({1.0F, 1.0F, 1.0F}));
  table.begin(1);
  CHECK(table.probability(1) == doctest::Approx(0.5 / 4 + 0.5 * 3 / 6));
}

TEST_CASE("a table for another number of samples and an impossible share are refused") {
  CHECK_THROWS_AS(Importance<By<Loss>>(7).source(Noisy{}, {.batch = 2}), SettingsError);
  CHECK_THROWS_AS(Importance<By<Loss>>{}.source(Noisy{}, {.batch = 2}), SettingsError);
  CHECK_THROWS_AS(Importance<By<Loss>>(n, 0.0), SettingsError);
  CHECK_THROWS_AS(Importance<By<Loss>>(n, 1.5), SettingsError);
}

TEST_CASE("a fit and a range test begin without losses, whatever trained with the policy before") {
  Importance<By<Loss>> const importance(n);
  auto source = importance.source(Noisy{}, {.batch = 6});
  auto module = line();
  Trainer trainer{module, importance.objective(MeanSquaredError{}),
                  Settings{.epochs = 3, .seed = 8}, Optimize<SGD>{.lr = 0.2}, importance};
  auto const restart = [&] {
    at::NoGradGuard const no_grad;
    auto const fresh = line();
    module->weight.copy_(fresh->weight);
    module->bias.copy_(fresh->bias);
  };
  auto const fitted = [&] {
    restart();
    static_cast<void>(trainer.fit(source));
    return module->weight.detach().clone();
  };
  RateRange const range{.from = 1e-4, .to = 1e-1, .steps = 12};
  auto const losses = [&] {
    restart();
    std::vector<double> all;
    for (auto const& point : find_learning_rate(trainer, source, range).points) {
      all.push_back(point.loss);
    }
    return all;
  };
  std::vector<double> const first = losses();
  at::Tensor const expected = fitted();
  CHECK(at::equal(fitted(), expected));
  CHECK(losses() == first);
  CHECK(at::equal(fitted(), expected));
  std::ostringstream out;
  restart();
  CHECK(trainer.dry_run(source, out));
  CHECK(at::equal(fitted(), expected));
}

TEST_CASE("two fits at once cannot share what they learn of the samples") {
  ImportanceTable table(4, 0.5);
  table.begin_fit();
  CHECK_THROWS_AS(table.begin_fit(), ConcurrentFitError);
  table.end_fit();
  table.begin_fit();
}

TEST_CASE("the identity of a source is the same in every locale") {
  auto const identity = [] {
    DataIdentity to;
    Importance<By<Loss>>(n, 0.25).source(Noisy{}, {.batch = 6}).identify(to);
    return to.values();
  };
  auto const expected = identity();
  CHECK(expected.at("uniform") == "0.250000");  // as every checkpoint has it
  CommaLocale const comma;
  REQUIRE(comma.works());
  CHECK(identity() == expected);
}

}  // namespace frugal_test::policy_importance
