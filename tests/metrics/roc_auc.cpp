// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/roc_auc.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>
#include <string>

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

/// Why a metric is NaN, after checking that it is.
template <class M>
std::string reason(at::Tensor const& output, at::Tensor const& target) {
  M metric;
  add(metric, output, target);
  CHECK(std::isnan(metric.result()));
  return metric.warning();
}

TEST_CASE("where a class has none or all of the labels it is NaN, and says so with both numbers") {
  std::string const one = reason<RocAuc<>>(at::ones({4}), at::tensor({1, 1, -100, 1}));
  CHECK(says(one, "3 of 3 labels are of class 1"));
  CHECK(says(one, "measure on data that has labels of every class"));
  CHECK(says(reason<RocAuc<>>(at::ones({2}), at::zeros({2})), "0 of 2 labels are of class 1"));
  CHECK(says(reason<RocAuc<Macro>>(at::ones({2, 3}), at::tensor({0, 1})),
             "0 of 2 labels are of class 2"));
  CHECK(std::isnan(RocAuc<>().result()));
  RocAuc<> both;
  add(both, at::tensor({0.0, 1.0}), at::tensor({0, 1}));
  CHECK(both.result() == 1);
  CHECK(both.warning().empty());
}

TEST_CASE("probabilities that round to 1 do not tie: it ranks by their log-odds") {
  // Softmax gives class 0 of the first two rows the probability 1 in double precision; their
  // margins are 40 and 50. Of class 0: the positive has the larger margin.
  at::Tensor const logits =
      at::tensor({50.0, 0.0, 0.0, 40.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}).view({4, 3});
  at::Tensor const labels = at::tensor({0, 1, 1, 2});
  // Class 0: the positive is above all three: 1. Class 1: positives at rows 1 and 2, negatives at
  // rows 0 and 3; log-odds are -50 - log 1 and the like: row 2 (1 - log 2) is above both, row 1
  // (-40) above row 0 (-50) alone: 3 of 4. Class 2: row 3 is above all: 1.
  CHECK(over<RocAuc<Macro>>({logits, labels}).result() ==
        doctest::Approx((1 + 0.75 + 1) / 3).epsilon(1e-12));
}

TEST_CASE("differences alone matter: a constant added to a row leaves ties as they are") {
  at::Tensor const logits = at::tensor({1.0, 0.0, 0.5, 5.0, 4.0, 4.5, 0.25, 2.0, 1.0}).view({3, 3});
  // Rows 0 and 1 tie for every class.
  at::Tensor const labels = at::tensor({0, 1, 2});
  // Class 0: row 0 ties with 1 and is above 2: (1/2 + 1) / 2. Class 1: ties with 0, below 2: 1/4.
  // Class 2: z2 - log(e^z0 + e^z1): 0.5 - 1.313 = -0.813 of both, 1 - 2.16 = -1.16 of row 2: 0.
  CHECK(over<RocAuc<Macro>>({logits, labels}).result() ==
        doctest::Approx((0.75 + 0.25 + 0) / 3).epsilon(1e-12));
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
  CHECK(std::isnan(
      over<RocAuc<Macro>>({at::tensor({nan, 1.0, 0.0, 1.0}).view({2, 2}), at::tensor({0, 1})})
          .result()));
  RocAuc<> auc;
  at::Tensor const output = at::tensor({1.0F, 2.0F});
  add(auc, output, at::tensor({0, 1}));
  output.zero_();
  CHECK(auc.result() == 1);
}

TEST_CASE("a target of probabilities is refused, not cut off to class 0") {
  at::Tensor const smoothed = at::tensor({0.95F, 0.05F, 1.0F});
  std::string const text = refusal<RocAuc<>>(at::zeros({3}), smoothed);
  CHECK(says(text, "2 labels name no class (metric roc_auc)"));
  CHECK(says(text, "MixUp"));
  CHECK(says(refusal<RocAuc<>>(at::zeros({3, 2}), smoothed), "2 labels"));
}

}  // namespace frugal_test::metrics_roc_auc
