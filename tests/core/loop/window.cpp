// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, F features.
#include <doctest/doctest.h>

#include <torch/csrc/autograd/variable.h>
#include <frugal/core/loop/window.hpp>

#include "weights.hpp"

#include <limits>
#include <vector>

namespace frugal_test::loop_window {

using namespace frugal_test::loop;

TEST_CASE("in a window of one the seed is one, whatever the weight") {
  Window<1> window;
  window.open();
  CHECK(start(window, 17) == 1.0);
}

TEST_CASE("micro-batches of equal weight start from one N-th each") {
  Window<4> window;
  window.open();
  for (int i = 0; i < 4; ++i) {
    CHECK(start(window, 32) == 0.25);
    window.add(samples(32), 32);
  }
}

TEST_CASE("lighter micro-batches start from less than the first") {
  Window<2> window;
  window.open();
  CHECK(start(window, 30) == 0.5);
  CHECK(start(window, 10) == 1.0 / 6);
}

TEST_CASE("before a heavier micro-batch the gradients are halved until none starts from more") {
  Window<2> window;
  window.open();
  at::Tensor const gradient = at::full({}, 0.1, at::kDouble);
  CHECK(start(window, 10, gradient) == 0.5);
  // 10 is doubled twice: 40 is 30 or more.
  CHECK(start(window, 30, gradient) == 30.0 / 80);
  CHECK(gradient.item<double>() == 0.1 / 4);
}

TEST_CASE("no pass starts from more than one N-th, in whatever order the weights come") {
  std::vector<std::vector<double>> const orders{
      {1, 4096, 3}, {4096, 1, 3}, {1e-30, 1, 1e30}, {0, 5, 7}, {3, 4, 5}};
  for (std::vector<double> const& weights : orders) {
    Window<3> window;
    window.open();
    double sum = 0, all = 0;
    at::Tensor const gradient = at::zeros({}, at::kDouble);
    for (double const weight : weights) {
      double const seed = start(window, weight, gradient);
      CHECK(seed <= 1.0 / 3);
      gradient.add_(seed * (weight + 2));
      window.add(samples(1), weight);
      sum += weight * (weight + 2);
      all += weight;
    }
    window.normalize({gradient});
    CHECK(gradient.item<double>() == doctest::Approx(sum / all).epsilon(1e-14));
  }
}

TEST_CASE("a seed has the loss's type and requires no gradient") {
  Window<2> window;
  window.open();
  CHECK((window.seed(loss_of(1, at::kFloat)).scalar_type() == at::kFloat));
  window.shrink(1);
  at::Tensor const seed = window.seed(loss_of(1, at::kDouble));
  CHECK((seed.scalar_type() == at::kDouble));
  CHECK(seed.dim() == 0);
  CHECK_FALSE(seed.requires_grad());
}

TEST_CASE("the seed of a full window is made once and reused") {
  Window<2> window;
  window.open();
  window.shrink(8);
  at::Tensor const first = window.seed(loss_of(8));
  window.open();
  window.shrink(8);
  CHECK(window.seed(loss_of(8)).is_same(first));
}

TEST_CASE("settling a full window of equal weights does not change the gradients") {
  Window<2> window;
  window.open();
  for (int i = 0; i < 2; ++i) {
    start(window, 3);
    window.add(samples(3), 3);
  }
  at::Tensor const gradient = at::full({2}, 5.0);
  auto const version = gradient._version();
  window.normalize({gradient});
  CHECK(gradient._version() == version);
}

TEST_CASE("settling a ragged window scales up to the mean of its micro-batches") {
  Window<4> window;
  window.open();
  start(window, 8);
  window.add(samples(8), 8);
  std::vector<at::Tensor> const gradients{at::full({2}, 1.0), at::full({3}, 2.0)};
  window.normalize(gradients);
  CHECK(gradients[0].equal(at::full({2}, 4.0)));
  CHECK(gradients[1].equal(at::full({3}, 8.0)));
}

TEST_CASE("a negative or NaN weight is refused") {
  for (double const weight :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    Window<1> one;
    Window<2> two;
    one.open();
    two.open();
    CHECK_THROWS_AS(one.shrink(weight), SettingsError);
    auto const error = thrown_by<SettingsError>([&] { two.shrink(weight); });
    REQUIRE(error);
    CHECK(error->fault().where == "Loss::weight");
  }
}

TEST_CASE("a micro-batch of weight zero adds nothing, first or last") {
  for (bool const first : {true, false}) {
    Window<2> window;
    window.open();
    double sum = 0;
    for (int i = 0; i < 2; ++i) {
      double const weight = (i == 0) == first ? 0.0 : 6.0;
      sum += start(window, weight) * (weight == 0 ? 1000.0 : 7.0);
      window.add(samples(2), weight);
    }
    at::Tensor const gradient = at::full({}, sum, at::kDouble);
    window.normalize({gradient});
    CHECK(gradient.item<double>() == 7.0);
  }
}

TEST_CASE("a window of zero weights has the gradient zero and divides by nothing") {
  Window<2> window;
  window.open();
  for (int i = 0; i < 2; ++i) {
    CHECK(start(window, 0) == 0.0);
    window.add(samples(2), 0);
  }
  at::Tensor const gradient = at::zeros({2});
  window.normalize({gradient});
  CHECK(gradient.equal(at::zeros({2})));
}

TEST_CASE("a window counts its micro-batches, samples and tokens, and is reset by the next") {
  Window<3> window;
  window.open();
  CHECK(window.empty());
  window.add(samples(4), 4);
  window.add(samples(2), 1.5);
  CHECK_FALSE(window.empty());
  CHECK(window.micro_batches() == 2);
  CHECK(window.samples() == 6);
  CHECK(window.tokens() == 18);
  CHECK(window.weight() == 5.5);
  window.open();
  CHECK(window.empty());
  CHECK(window.weight() == 0);
}

// The gradient of one window of micro-batches compared with that of all its samples at once.
template <int N>
double distance_from_one_batch(std::vector<std::int64_t> const& sizes) {
  at::manual_seed(3);
  at::Tensor const weight_F = at::randn({5}, at::kDouble).set_requires_grad(true);
  std::vector<at::Tensor> parts;
  auto const mean_loss = [&](at::Tensor const& data_BF) {
    return at::tanh(data_BF.matmul(weight_F)).square().mean();
  };
  Window<N> window;
  window.open();
  for (std::int64_t const size : sizes) {
    parts.push_back(at::randn({size, 5}, at::kDouble));
    Loss loss{.value = mean_loss(parts.back()), .weight = static_cast<double>(size)};
    double const factor = window.shrink(*loss.weight);
    if (weight_F.grad().defined()) weight_F.mutable_grad().mul_(factor);
    loss.value.backward(window.seed(loss));
    window.add(parts.back(), *loss.weight);
  }
  at::Tensor const gradient = weight_F.grad().clone();
  window.normalize({gradient});
  weight_F.mutable_grad().reset();
  mean_loss(at::cat(parts)).backward();
  return (gradient - weight_F.grad()).abs().max().item<double>() /
         weight_F.grad().abs().max().item<double>();
}

TEST_CASE("the gradient of a window is that of one big batch: full, ragged, unequal") {
  constexpr double rounding = 1e-14;
  CHECK(distance_from_one_batch<4>({8, 8, 8, 8}) < rounding);
  CHECK(distance_from_one_batch<4>({8, 8, 3}) < rounding);
  CHECK(distance_from_one_batch<4>({1, 100, 7, 2}) < rounding);
  CHECK(distance_from_one_batch<8>({5}) < rounding);
}

TEST_CASE("Window<0> receives the number of micro-batches, and does the same") {
  Window<0> window;
  window.open(4);
  CHECK(start(window, 32) == 0.25);
  window.add(samples(32), 32);
  CHECK(window.micro_batches() == 1);
  window.open(2);
  CHECK(window.empty());
  CHECK(start(window, 30) == 0.5);
  window.add(samples(30), 30);
  CHECK(start(window, 15) == 0.25);
  window.add(samples(15), 15);
  at::Tensor const gradient = at::full({}, 0.5 * 5 + 0.25 * 2, at::kDouble);
  window.normalize({gradient});
  CHECK(gradient.item<double>() == (30.0 * 5 + 15.0 * 2) / 45);
}

TEST_CASE("a window of one micro-batch has the seed one in Window<0> and costs no operator") {
  Window<0> window;
  for (double const weight : {17.0, 0.0}) {
    window.open(1);
    CHECK(start(window, weight) == 1.0);
    window.add(samples(3), weight);
    at::Tensor const gradient = at::full({2}, 5.0);
    auto const version = gradient._version();
    window.normalize({gradient});
    CHECK(gradient._version() == version);
  }
}

}  // namespace frugal_test::loop_window
