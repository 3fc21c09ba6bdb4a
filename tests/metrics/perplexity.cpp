// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/perplexity.hpp>

#include "cases.hpp"

#include <cmath>

namespace frugal_test::metrics_perplexity {

using namespace frugal_test::metrics;

TEST_CASE("perplexity is that of torchmetrics, over ragged batches and without ignored labels") {
  Json const cases = reference("metrics.json").at("classes");
  for (Json const& which : cases) {
    CAPTURE(which.at("name").get<std::string>());
    for (double const found : every_way<Perplexity>(set_in(which, at::kLong))) {
      CHECK(found == doctest::Approx(which.at("perplexity").get<double>()).epsilon(1e-6));
    }
  }
}

TEST_CASE("logits of 16 bits are taken in single precision; no label is NaN") {
  at::Tensor const logits = at::tensor({1.0, 2.0, 4.0, 0.5}).view({2, 2});
  at::Tensor const labels = at::tensor({1, 0});
  double const exact = over<Perplexity>({logits, labels}).result();
  CHECK(over<Perplexity>({logits.to(at::kBFloat16), labels}).result() ==
        doctest::Approx(exact).epsilon(1e-6));
  CHECK(std::isnan(Perplexity().result()));
}

TEST_CASE("labels that name no class are refused, and are no error of LibTorch") {
  at::Tensor const logits = at::zeros({3, 2});
  CHECK(over<Perplexity>({logits, at::tensor({0, 1, -100})}).result() == doctest::Approx(2));
  for (std::int64_t const outside : {2, 255, -1}) {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(
            over<Perplexity>({logits, at::tensor({std::int64_t{0}, std::int64_t{1}, outside})})
                .result()),
        doctest::Contains("1 labels name no class (metric perplexity)"), frugal::MetricError);
  }
}

}  // namespace frugal_test::metrics_perplexity
