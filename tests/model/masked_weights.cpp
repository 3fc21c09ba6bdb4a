// SPDX-License-Identifier: Apache-2.0
#include <frugal/model/masked_weights.hpp>

#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/error.hpp>
#include <frugal/model/where.hpp>

#include <string>
#include <vector>

namespace frugal_test::model_prune_masked_weights {

using frugal::NamePatterns;
using frugal::Parameters;

TEST_CASE("a tied weight is pruned by each of its names") {
  torch::nn::Module net;
  at::Tensor const weight = net.register_parameter("words", at::ones({4, 3}));
  net.register_parameter("head", weight);
  net.register_parameter("other", at::ones({4, 3}));
  frugal::detail::MaskedWeights masked;
  for (std::string const name : {"head", "words"}) {
    masked.select(net, Parameters::of(net), NamePatterns({name}), "Prune");
    CHECK(masked.names == std::vector<std::string>{"words"});
  }
  masked.select(net, Parameters::of(net), NamePatterns({"words", "head"}), "Prune");
  CHECK(masked.names.size() == 1);
  CHECK_THROWS_AS(masked.select(net, Parameters::of(net), NamePatterns({"heads"}), "Prune"),
                  frugal::SettingsError);
}

}  // namespace frugal_test::model_prune_masked_weights
