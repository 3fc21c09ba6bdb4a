// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/precision_recall.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>

namespace frugal_test::metrics_precision_recall {

using namespace frugal_test::metrics;

template <class M>
int equals_reference(Json const& cases) {
  int compared = 0;
  for (Json const& which : cases) {
    CAPTURE(which.at("name").get<std::string>());
    CAPTURE(std::string(M::name));
    Set const set = set_in(which, at::kLong);
    for (double const found : every_way<M>(set)) {
      CHECK(found == doctest::Approx(which.at(std::string(M::name)).get<double>()).epsilon(1e-12));
      ++compared;
    }
  }
  return compared;
}

TEST_CASE("precision, recall and F1 of several classes are those of scikit-learn") {
  Json const cases = reference("metrics.json").at("classes");
  CHECK(equals_reference<PrecisionScore<Micro>>(cases) == 12);
  equals_reference<PrecisionScore<Macro>>(cases);
  equals_reference<PrecisionScore<Weighted>>(cases);
  equals_reference<RecallScore<Micro>>(cases);
  equals_reference<RecallScore<Macro>>(cases);
  equals_reference<RecallScore<Weighted>>(cases);
  equals_reference<F1Score<Micro>>(cases);
  equals_reference<F1Score<Macro>>(cases);
  equals_reference<F1Score<Weighted>>(cases);
}

TEST_CASE("of two classes they are those of class 1") {
  Json const cases = reference("metrics.json").at("two");
  CHECK(equals_reference<PrecisionScore<>>(cases) == 3);
  equals_reference<RecallScore<>>(cases);
  equals_reference<F1Score<>>(cases);
}

TEST_CASE("one logit a label, logits of two classes and targets of another type are one metric") {
  Set const set = set_in(reference("metrics.json").at("two").at(0), at::kLong);
  double const f1 = over<F1Score<>>(set).result();
  CHECK(over<F1Score<>>({set.output, set.target.to(at::kFloat)}).result() == f1);
  CHECK(over<F1Score<>>({set.output.unsqueeze(1), set.target}).result() == f1);
  CHECK(over<F1Score<>>({set.output.unsqueeze(1), set.target.unsqueeze(1)}).result() == f1);
  // Where both logits are equal the first class is taken, as by a logit of 0.
  at::Tensor const two = at::stack({-set.output, set.output}, 1);
  CHECK(over<F1Score<>>({two, set.target}).result() == f1);
}

TEST_CASE("nothing predicted is 0, and nothing measured is NaN") {
  CHECK(std::isnan(F1Score<Macro>().result()));
  CHECK(std::isnan(
      over<RecallScore<Weighted>>({at::ones({2, 3}), at::full({2}, -100, at::kLong)}).result()));
  CHECK(over<PrecisionScore<>>({at::full({4}, -1.0), at::ones({4}, at::kLong)}).result() == 0);
}

TEST_CASE("a NaN logit is a wrong prediction of another class") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  // Two of four are right; a NaN of label 1 is taken for 0, and one of label 0 for 1.
  at::Tensor const logits = at::tensor({1.0, -1.0, nan, nan});
  at::Tensor const labels = at::tensor({1, 0, 1, 0});
  CHECK(over<PrecisionScore<>>({logits, labels}).result() == 0.5);
  CHECK(over<RecallScore<>>({logits, labels}).result() == 0.5);
  CHECK(over<F1Score<Micro>>({logits, labels}).result() == 0.5);
  CHECK(over<F1Score<Macro>>({at::full({4, 3}, nan), at::tensor({0, 1, 2, 2})}).result() == 0);
}

TEST_CASE("what does not fit is refused with both numbers") {
  std::string const three = refusal<F1Score<>>(at::zeros({2, 3}), at::zeros({2}, at::kLong));
  CHECK(says(three, "f1 is of two classes"));
  CHECK(says(three, "the output has 3 classes"));
  std::string const label = refusal<F1Score<Macro>>(at::zeros({2, 3}), at::tensor({1, 3}));
  CHECK(says(label, "1 labels name no class"));
  CHECK(says(label, "from 0 to 2, and not -100"));
  std::string const shapes = refusal<F1Score<Macro>>(at::zeros({4, 3}), at::zeros({5}, at::kLong));
  CHECK(says(shapes, "output is [4, 3] Float, target is [5] Long"));
  CHECK(says(refusal<RecallScore<Macro>>(at::zeros({2, 3}, at::kLong), at::zeros({2}, at::kLong)),
             "it is [2, 3] Long"));
  F1Score<Macro> changing;
  add(changing, at::zeros({2, 3}), at::zeros({2}, at::kLong));
  CHECK_THROWS_WITH_AS(add(changing, at::zeros({2, 4}), at::zeros({2}, at::kLong)),
                       doctest::Contains("it was 3, and is 4"), MetricError);
}

TEST_CASE("names are those of scikit-learn") {
  CHECK(PrecisionScore<>::name == "precision");
  CHECK(RecallScore<Weighted>::name == "recall_weighted");
  CHECK(F1Score<Macro>::name == "f1_macro");
}

TEST_CASE("a target of probabilities is refused, not cut off to class 0") {
  at::Tensor const smoothed = at::tensor({0.95F, 0.05F, 1.0F});
  CHECK(says(refusal<F1Score<>>(at::zeros({3}), smoothed), "2 labels name no class (metric f1)"));
  CHECK(says(refusal<PrecisionScore<Macro>>(at::zeros({3}), smoothed), "2 labels"));
  CHECK(says(refusal<RecallScore<>>(at::zeros({3}), smoothed), "2 labels"));
}

}  // namespace frugal_test::metrics_precision_recall
