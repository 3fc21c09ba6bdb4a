// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/policy/optimize/groups.hpp>

#include <map>
#include <string>
#include <vector>

namespace frugal_test::policy_optimize_layer_wise {

using frugal::layer_wise_rate;

/// "name: factor" of each parameter, in the log's names.
std::vector<std::string> factors(frugal::ParameterGroup const& group,
                                 std::vector<std::string> const& names) {
  std::vector<std::string> all;
  for (frugal::NamedFactor const& each : group.lr_factors(names)) {
    all.push_back(each.name + " " + std::to_string(each.factor).substr(0, 6));
  }
  return all;
}
using Texts = std::vector<std::string>;

TEST_CASE("the head has the factor 1, and each layer below it `decay` of the one above") {
  Texts const names{"cls_token",       "embed.weight", "blocks.0.weight", "blocks.0.mlp.bias",
                    "blocks.1.weight", "norm.weight",  "head.weight"};
  CHECK(factors(layer_wise_rate("blocks.{}.", 0.5), names) ==
        Texts{"embeddings 0.1250", "embeddings 0.1250", "blocks.0 0.2500", "blocks.0 0.2500",
              "blocks.1 0.5000", "head 1.0000", "head 1.0000"});
}

TEST_CASE("numbers give the order: gaps, and 10 after 9") {
  CHECK(factors(layer_wise_rate("{}.", 0.5), {"10.weight", "9.weight", "2.weight"}) ==
        Texts{"10 0.5000", "9 0.2500", "2 0.1250"});
}

TEST_CASE("a star stands for any text, and a number is taken as a whole") {
  Texts const names{"tower1.layer.0.w", "tower1.layer.11.w", "tower1.player.0.w"};
  CHECK(factors(layer_wise_rate("*.layer.{}.", 0.5), names) ==
        Texts{"*.layer.0 0.2500", "*.layer.11 0.5000", "head 1.0000"});
  // "1" alone is no layer of "tower1.layer.11."
  CHECK_THROWS_AS(factors(layer_wise_rate("tower1.layer.1{}.", 0.5), names), frugal::SettingsError);
}

TEST_CASE("what lies below can be named, where the module registers it elsewhere") {
  Texts const names{"scale", "layer.0.w", "head.w", "tokens.w"};
  CHECK(factors(layer_wise_rate("layer.{}.", 0.5, {"tokens.*"}), names) ==
        Texts{"head 1.0000", "layer.0 0.5000", "head 1.0000", "embeddings 0.2500"});
}

std::string refusal(std::string const& layers, double decay, Texts const& below = {}) {
  try {
    factors(layer_wise_rate(layers, decay, below), {"layer.0.w", "head.w"});
    return "not refused";
  } catch (frugal::SettingsError const& error) {
    return error.fault().what;
  }
}

TEST_CASE("layers that are not there, and settings out of range, are refused") {
  CHECK(refusal("encoder.{}.", 0.5) == "no parameter is in a layer \"encoder.{}.\"");
  CHECK(refusal("layer.", 0.5) == "\"layer.\" has not one {}");
  CHECK(refusal("{}.{}.", 0.5) == "\"{}.{}.\" has not one {}");
  CHECK(refusal("layer.{}.", 0) == "decay is 0");
  CHECK(refusal("layer.{}.", -0.5) == "decay is -0.5");
  CHECK(refusal("layer.{}.", std::nan("")) == "decay is nan");
  CHECK(refusal("layer.{}.", 0.5, {"token.*"}) ==
        "the pattern 'token.*' of what is below matches nothing");
  CHECK(refusal("layer.{}.", 0.5) == "not refused");
}

}  // namespace frugal_test::policy_optimize_layer_wise
