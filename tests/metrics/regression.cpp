// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/data/pad.hpp>
#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/regression.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace frugal_test::metrics_regression {

using namespace frugal_test::metrics;

template <class M>
void equals_reference() {
  Json const cases = reference("metrics.json").at("values");
  for (Json const& which : cases) {
    CAPTURE(which.at("name").get<std::string>());
    CAPTURE(std::string(M::name));
    for (double const found : every_way<M>(set_in(which, at::kFloat))) {
      CHECK(found == doctest::Approx(which.at(std::string(M::name)).get<double>()).epsilon(1e-10));
    }
  }
}

TEST_CASE("mean absolute and squared errors are those of scikit-learn") {
  equals_reference<MAE>();
  equals_reference<MSE>();
}

TEST_CASE("R2 is that of scikit-learn, also far from 0 and of several values a sample") {
  equals_reference<R2>();
}

TEST_CASE("R2 of a constant target is 1 if all is exact, and else 0; of one sample it is NaN") {
  at::Tensor const constant = at::full({7}, 0.1);
  CHECK(over<R2>({constant, constant}).result() == 1);
  CHECK(over<R2>({constant + 1, constant}).result() == 0);
  CHECK(std::isnan(over<R2>({at::zeros({1}), at::zeros({1})}).result()));
}

TEST_CASE("a NaN prediction makes them NaN, of a constant target too") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  Set const set{at::tensor({1.0, nan, 3.0}), at::ones({3})};
  CHECK(std::isnan(over<MAE>(set).result()));
  CHECK(std::isnan(over<MSE>(set).result()));
  CHECK(std::isnan(over<R2>(set).result()));
}

TEST_CASE("without a value the errors are NaN") {
  CHECK(std::isnan(MAE().result()));
  CHECK(std::isnan(MSE().result()));
  CHECK(std::isnan(R2().result()));
}

TEST_CASE("the padding of a batch does not count, of values and of labels") {
  // Targets of a floating-point type are padded with 0; what the module makes of padding is far from it.
  std::vector<std::pair<at::Tensor, at::Tensor>> const samples{
      {at::tensor({1.0F, -2.0F, 0.5F}), at::tensor({1.0F, 0.0F, 1.0F})},
      {at::tensor({-3.0F}), at::tensor({1.0F})}};
  PaddedBatch const padded = Pad{.value = 9}(samples);
  auto const of_batch = [&]<class M>(M metric) {
    metric.add(Loss{.value = {}, .output = padded.data}, padded);
    return metric.result();
  };
  CHECK(of_batch(MAE()) == (0 + 2 + 0.5 + 4) / 4);
  CHECK(of_batch(MSE()) == (0 + 4 + 0.25 + 16) / 4);
  CHECK(of_batch(Accuracy()) == 0.75);
  CHECK_THROWS_WITH_AS(of_batch(R2()), doctest::Contains("the target is padded"), MetricError);
}

TEST_CASE("shapes that broadcast are refused with both") {
  CHECK(says(refusal<MSE>(at::zeros({4, 1}), at::zeros({4})),
             "output is [4, 1] Float, target is [4] Float"));
  R2 changing;
  add(changing, at::zeros({2, 3}), at::zeros({2, 3}));
  CHECK_THROWS_WITH_AS(add(changing, at::zeros({2, 4}), at::zeros({2, 4})),
                       doctest::Contains("it was 3, and is 4"), MetricError);
}

}  // namespace frugal_test::metrics_regression
