// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/roc_auc.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>

namespace frugal_test::metrics_roc_auc {

using namespace frugal_test::metrics;

TEST_CASE("the area is that of scikit-learn, with ties and ignored labels") {
  Json const which = reference("metrics.json").at("two").at(0);
  Set const set = set_in(which, at::kLong);
  double const area = which.at("roc_auc");
  for (double const found : every_way<RocAuc<>>(set)) {
    CHECK(found == doctest::Approx(area).epsilon(1e-12));
  }
  CHECK(over<RocAuc<>>({set.output.to(at::kDouble), set.target.to(at::kFloat)}).result() ==
        over<RocAuc<>>(set).result());
  at::Tensor const two = at::stack({at::zeros_like(set.output), set.output}, 1);
  CHECK(over<RocAuc<>>({two, set.target}).result() == over<RocAuc<>>(set).result());
}

TEST_CASE("one class against the rest is that of scikit-learn, of tokens too") {
  int compared = 0;
  Json const cases = reference("metrics.json").at("classes");
  for (Json const& which : cases) {
    if (!which.contains("roc_auc_ovr")) continue;
    CAPTURE(which.at("name").get<std::string>());
    ++compared;
    for (double const found : every_way<RocAuc<Macro>>(set_in(which, at::kLong))) {
      CHECK(found == doctest::Approx(which.at("roc_auc_ovr").get<double>()).epsilon(1e-12));
    }
  }
  CHECK(compared == 3);
}

TEST_CASE("labels of one class are refused with both numbers") {
  std::string const one = refusal<RocAuc<>>(at::ones({4}), at::tensor({1, 1, -100, 1}));
  CHECK(says(one, "3 of 3 labels are of class 1"));
  CHECK(says(one, "Measure on data that has labels of every class"));
  CHECK(says(refusal<RocAuc<>>(at::ones({2}), at::zeros({2})), "0 of 2 labels are of class 1"));
  CHECK(says(refusal<RocAuc<Macro>>(at::ones({2, 3}), at::tensor({0, 1})),
             "0 of 2 labels are of class 2"));
  CHECK_THROWS_AS(RocAuc<>().result(), MetricError);
}

TEST_CASE("labels that are no class, and other shapes, are refused") {
  CHECK(says(refusal<RocAuc<>>(at::ones({3}), at::tensor({0, 1, 2})), "1 labels name no class"));
  CHECK(says(refusal<RocAuc<Macro>>(at::ones({3, 2}), at::tensor({0, 1, 2})),
             "1 labels name no class"));
  CHECK(says(refusal<RocAuc<>>(at::ones({3, 4}), at::zeros({3}, at::kLong)), "RocAuc<Macro>"));
}

TEST_CASE("a NaN score makes it NaN, and what is added is not changed behind its back") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(over<RocAuc<>>({at::tensor({nan, 1.0}), at::tensor({0, 1})}).result()));
  RocAuc<> auc;
  at::Tensor const output = at::tensor({1.0F, 2.0F});
  add(auc, output, at::tensor({0, 1}));
  output.zero_();
  CHECK(auc.result() == 1);
}

}  // namespace frugal_test::metrics_roc_auc
