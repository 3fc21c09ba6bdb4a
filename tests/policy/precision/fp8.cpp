// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>

#include <frugal/policy/optimize.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/trainer.hpp>

#include <limits>
#include <string>
#include <vector>

#include "support/quantized.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_precision_fp8 {

using namespace frugal_test::support;
using frugal::FP8;
using frugal::Precision;
using frugal::Scales;
using frugal::detail::Fp8Format;

TEST_CASE("a layer in FP8 has torchao's output and gradients, by both recipes") {
  Json const file = reference("quantized_training.json");
  for (Json const& which : file.at("cases")) {
    CAPTURE(which.at("name").get<std::string>());
    // torchao's emulation multiplies rounded numbers in FP32.
    if (which.at("recipe") == "tensorwise") check_layer<Fp8Format<Scales::per_tensor>>(which, 1e-5);
    if (which.at("recipe") == "rowwise") check_layer<Fp8Format<Scales::per_row>>(which, 1e-5);
  }
}

struct Sum {
  template <class Module>
  at::Tensor operator()(Module& module, at::Tensor const& batch) const {
    return module->forward(batch).square().mean();
  }
};

at::Tensor trained(Precision<FP8> const& precision, std::vector<std::string>* warnings = nullptr) {
  torch::manual_seed(8);
  torch::nn::Linear layer(16, 32);
  frugal::Trainer trainer{layer, Sum{}, frugal::Settings{}, frugal::Optimize<frugal::SGD>{.lr = 1},
                          precision};
  auto const report = trainer.fit(std::vector<at::Tensor>(4, torch::randn({16, 16})));
  if (warnings != nullptr) *warnings = report.warnings;
  return layer->weight.detach();
}

TEST_CASE("the member chooses what shares a scale, and a CPU is a note in the report") {
  std::vector<std::string> warnings;
  at::Tensor const by_tensor = trained({}, &warnings);
  at::Tensor const by_row = trained({.scales = Scales::per_row});
  CHECK_FALSE(at::equal(by_tensor, by_row));
  CHECK(distance(by_tensor, by_row) < 0.01);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front() == Precision<FP8>::caution(/*on_gpu=*/false));
}

TEST_CASE("a GPU before Ada has no FP8") {
  CHECK_THROWS_AS(frugal::detail::require_fp8(frugal::detail::Capability{8, 6}),
                  frugal::SettingsError);
  frugal::detail::require_fp8(frugal::detail::Capability{8, 9});
  frugal::detail::require_fp8(frugal::detail::Capability{9, 0});
  frugal::detail::require_fp8({});
}

TEST_CASE("a NaN in FP8 stays one") {
  at::Tensor matrix = torch::randn({4, 16});
  matrix[1][3] = std::numeric_limits<float>::quiet_NaN();
  using Rows = Fp8Format<Scales::per_row>;
  at::Tensor const product =
      Rows::multiply(Rows::rows(matrix), Rows::rows(torch::randn({16, 16})).t(), {4, 16});
  CHECK(product[1].isnan().all().item<bool>());
  CHECK(product[0].isfinite().all().item<bool>());
}

}  // namespace frugal_test::policy_precision_fp8
