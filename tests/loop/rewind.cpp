// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/batchnorm.h>

#include <frugal/loop/rewind.hpp>

#include "support/running.hpp"

namespace frugal_test::loop_rewind {

using namespace frugal_test::support;

TEST_CASE("a rewind puts back parameters, buffers, modes and generators") {
  Mlp module(Mlp::Shape{.dropout = 0.5, .norm = true});
  module.norm->eval();
  auto const before = tensors_of(module);
  auto const generator = at::detail::getDefaultCPUGenerator().get_state();
  {
    frugal::detail::Rewind const rewind(module, at::kCPU);
    module.train();
    module.forward(samples(8).data);
    module.eval();
    at::NoGradGuard const no_gradients;
    module.first->weight.add_(1);
    CHECK_FALSE(same_bits(before, tensors_of(module)));
    CHECK_FALSE(at::equal(generator, at::detail::getDefaultCPUGenerator().get_state()));
  }
  CHECK(same_bits(before, tensors_of(module)));
  CHECK(at::equal(generator, at::detail::getDefaultCPUGenerator().get_state()));
  CHECK(module.is_training());
  CHECK(module.dropout->is_training());
  CHECK_FALSE(module.norm->is_training());
}

TEST_CASE("a buffer that is registered and not there is left alone") {
  torch::nn::BatchNorm1d norm(torch::nn::BatchNorm1dOptions(3).track_running_stats(false));
  CHECK_FALSE(norm->running_mean.defined());
  {
    frugal::detail::Rewind const rewind(*norm, at::kCPU);
    at::NoGradGuard const no_gradients;
    norm->weight.add_(1);
  }
  CHECK(norm->weight.equal(at::ones({3})));
}

TEST_CASE("a module without tensors has nothing to put back") {
  torch::nn::Dropout dropout;
  frugal::detail::Rewind const rewind(*dropout, at::kCPU);
  CHECK(dropout->parameters().empty());
}

}  // namespace frugal_test::loop_rewind
