// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/modes.hpp>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace frugal_test::libtorch_modes {

using frugal::detail::EvaluationMode;
using frugal::detail::KeepModes;

/// A Linear, and a BatchNorm with frozen statistics.
struct Net {
  torch::nn::Linear linear{2, 2};
  torch::nn::BatchNorm1d frozen{2};
  torch::nn::Sequential all{linear, frozen};
  Net() { frozen->eval(); }
};

TEST_CASE("in evaluation mode no part trains, and then each part's mode is restored") {
  Net net;
  {
    EvaluationMode const evaluating(*net.all);
    CHECK_FALSE(net.all->is_training());
    CHECK_FALSE(net.linear->is_training());
  }
  CHECK(net.all->is_training());
  CHECK(net.linear->is_training());
  CHECK_FALSE(net.frozen->is_training());
}

TEST_CASE("a training part in a module in evaluation mode is restored too") {
  Net net;
  net.all->eval();
  net.linear->train();
  {
    KeepModes const keep(*net.all);
    net.all->train();
  }
  CHECK_FALSE(net.all->is_training());
  CHECK(net.linear->is_training());
  CHECK_FALSE(net.frozen->is_training());
}

TEST_CASE("modes are restored when an error passes through") {
  Net net;
  try {
    EvaluationMode const evaluating(*net.all);
    throw 1;
  } catch (int) {
    CHECK(net.linear->is_training());
  }
}

}  // namespace frugal_test::libtorch_modes
