// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/torch.h>

#include <frugal/core/libtorch/batch_norms.hpp>

#include <cstdint>
#include <vector>

namespace frugal_test::libtorch_batch_norms {

TEST_CASE("every BatchNorm layer of a module is visited, of any dimension, and nothing else") {
  torch::nn::Sequential inner(torch::nn::BatchNorm2d(3), torch::nn::Conv2d(3, 4, 1),
                              torch::nn::BatchNorm3d(5));
  torch::nn::ModuleList outer(torch::nn::BatchNorm1d(2),
                              torch::nn::LayerNorm(std::vector<std::int64_t>{4}),
                              torch::nn::InstanceNorm2d(6), inner);
  std::vector<std::int64_t> features;
  frugal::detail::each_batch_norm(
      *outer, [&](auto& layer) { features.push_back(layer.options.num_features()); });
  CHECK(features == std::vector<std::int64_t>{2, 3, 5});
}

TEST_CASE("a module that is a BatchNorm layer is visited, with or without statistics") {
  torch::nn::BatchNorm1d without(torch::nn::BatchNorm1dOptions(7).track_running_stats(false));
  int seen = 0;
  frugal::detail::each_batch_norm(*without, [&](auto& layer) {
    CHECK_FALSE(layer.running_mean.defined());
    ++seen;
  });
  CHECK(seen == 1);
}

}  // namespace frugal_test::libtorch_batch_norms
