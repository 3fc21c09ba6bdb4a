// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, F features.
#include <doctest/doctest.h>

#include <torch/csrc/autograd/variable.h>
#include <frugal/cluster/summed_windows.hpp>

#include "core/loop/weights.hpp"

#include <vector>

namespace frugal_test::cluster_summed_windows {

using namespace frugal_test::loop;
using frugal::WindowShare;

TEST_CASE("no pass of a share starts from more than one, in whatever order the weights come") {
  std::vector<std::vector<double>> const orders{
      {1, 4096, 3}, {4096, 1, 3}, {1e-30, 1, 1e30}, {0, 5, 7}, {3, 4, 5}};
  for (std::vector<double> const& weights : orders) {
    WindowShare window;
    window.open();
    double sum = 0;
    at::Tensor const gradient = at::zeros({}, at::kDouble);
    for (double const weight : weights) {
      double const seed = start(window, weight, gradient);
      CHECK(seed <= 1);
      gradient.add_(seed * (weight + 2));
      window.add(samples(1), weight);
      sum += weight * (weight + 2);
    }
    window.complete({gradient});
    CHECK(gradient.item<double>() == doctest::Approx(sum).epsilon(1e-14));
  }
}

TEST_CASE("the gradients of a share are of losses times weights, and then of all shares' mean") {
  WindowShare window;
  window.open();
  at::Tensor const gradient = at::zeros({2});
  gradient.add_(start(window, 4, gradient) * 5);
  CHECK(start(window, 6, gradient) == 6.0 / 8);
  gradient.add_(6.0 / 8 * 2);
  window.complete({gradient});
  CHECK(at::equal(gradient, at::full({2}, 4.0 * 5 + 6.0 * 2)));
  window.complete({gradient});  // once
  window.normalize({gradient}, 16);
  CHECK(at::equal(gradient, at::full({2}, 2.0)));
}

TEST_CASE("a share of a negative or infinite weight is refused") {
  for (double const weight : {-1.0, 1e301}) {
    WindowShare window;
    window.open();
    CHECK_THROWS_AS(window.shrink(weight), SettingsError);
  }
}

}  // namespace frugal_test::cluster_summed_windows
