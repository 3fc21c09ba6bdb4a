// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/ignore_index.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal_test::metrics_accuracy {

using namespace frugal_test::metrics;

TEST_CASE("accuracy is that of scikit-learn, over ragged batches and without ignored labels") {
  Json const file = reference("metrics.json");
  int compared = 0;
  for (char const* const kind : {"classes", "two"}) {
    for (Json const& which : file.at(kind)) {
      CAPTURE(which.at("name").get<std::string>());
      for (double const found : every_way<Accuracy>(set_in(which, at::kLong))) {
        CHECK(found == which.at("accuracy").get<double>());
        ++compared;
      }
    }
  }
  CHECK(compared == 5 * 3);
}

TEST_CASE("accuracy without the module's output is a MetricError that says what to return") {
  Accuracy accuracy;
  CHECK_THROWS_WITH_AS(accuracy.add(Loss{.value = at::zeros({})}, Batch{{}, at::zeros({4})}),
                       doctest::Contains(".output = logits"), MetricError);
}

TEST_CASE("shapes that broadcast are refused: [B, 1] with [B, 1, 1], probabilities as labels") {
  CHECK(says(refusal<Accuracy>(at::zeros({4, 3}), at::zeros({4, 3, 1})), "[4, 3] Float"));
  CHECK(says(refusal<Accuracy>(at::zeros({4, 3}), at::zeros({4})), "target is [4] Float"));
  CHECK(says(refusal<Accuracy>(at::zeros({}), at::zeros({4})), "output is [] Float"));
}

TEST_CASE("labels that are all ignored give NaN, and copies continue independently") {
  Accuracy accuracy;
  add(accuracy, at::ones({2, 3}), at::full({2}, ignored_label, at::kLong));
  CHECK(std::isnan(accuracy.result()));
  Accuracy copy = accuracy;
  add(copy, at::ones({2, 3}), at::zeros({2}, at::kLong));
  CHECK(copy.result() == 1);
  CHECK(std::isnan(accuracy.result()));
}

TEST_CASE("a NaN logit is a wrong prediction, whatever the label") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  // A model that has diverged, on labels of which 9 in 10 are class 0.
  at::Tensor const labels = at::zeros({10}, at::kLong);
  labels[9] = 1;
  CHECK(over<Accuracy>({at::full({10, 2}, nan), labels}).result() == 0);
  CHECK(over<Accuracy>({at::full({10}, nan), labels}).result() == 0);
  CHECK(over<Accuracy>({at::full({10, 1}, nan), labels}).result() == 0);
  // One of a row is enough, also where another would have been right.
  at::Tensor const rows = at::tensor({9.0, nan, 0.0, 9.0, 0.0, 0.0}).view({2, 3});
  CHECK(over<Accuracy>({rows, at::tensor({0, 0})}).result() == 0.5);
  // The last class has none after it.
  CHECK(over<Accuracy>({at::full({3, 3}, nan), at::tensor({0, 1, 2})}).result() == 0);
  // Tokens: [B, C, T] with [B, T].
  at::Tensor const tokens = at::zeros({1, 2, 3});
  tokens[0][0][1] = nan;
  CHECK(over<Accuracy>({tokens, at::zeros({1, 3}, at::kLong)}).result() == 2.0 / 3);
}

TEST_CASE("other targets: a pair's second, and labels of another integer type or layout") {
  Accuracy accuracy;
  at::Tensor const labels = at::tensor({0, 9, 1, 9}).view({2, 2}).select(1, 0);
  accuracy.add(Loss{.value = {}, .output = at::eye(2)}, std::pair(at::zeros({2}), labels));
  accuracy.add(Loss{.value = {}, .output = at::eye(2)},
               std::pair(at::zeros({2}), at::tensor({1, 1}).to(at::kInt)));
  CHECK(accuracy.result() == 0.75);
}

TEST_CASE("floats are labels where they are 0, 1 or -100; probabilities are refused, not cut off") {
  at::Tensor const output = at::tensor({2.0, -1.0, 1.0, -3.0, 1.0}).view({5, 1});
  at::Tensor const labels = at::tensor({1.0F, 0.0F, -100.0F, 1.0F, 0.0F});
  for (at::ScalarType const type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    CHECK(over<Accuracy>({output, labels.to(type)}).result() == 0.5);
  }

  // MixUp: two images of two, each a mixture.
  at::Tensor const mixed = at::tensor({0.7F, 0.3F, 0.3F, 0.7F}).view({2, 2});
  std::string const text = refusal<Accuracy>(at::zeros({2, 2}), mixed);
  CHECK(says(text, "4 labels name no class (metric accuracy): they are not from 0 to 1, and not"));
  CHECK(says(text, "MixUp"));
  // Label smoothing.
  CHECK(says(refusal<Accuracy>(at::zeros({2}), at::tensor({0.95F, 0.05F})), "2 labels"));
  CHECK(says(refusal<Accuracy>(at::zeros({3}), at::tensor({1.0F, 2.0F, -1.0F})), "2 labels"));
  float const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(says(refusal<Accuracy>(at::zeros({2}), at::tensor({1.0F, nan})), "1 labels"));
}

TEST_CASE("integer labels that name no class are refused with the result, in every type") {
  at::Tensor const logits = at::eye(3).index({at::tensor({0, 1, 2, 0})});
  for (at::ScalarType const type : {at::kLong, at::kInt, at::kShort, at::kByte}) {
    // 255: "void" in many sets of pixels. It is no wrong prediction.
    Set const set{logits, at::tensor({0, 1, 255, 3}).to(type)};
    CHECK_THROWS_WITH_AS(static_cast<void>(over<Accuracy>(set).result()),
                         doctest::Contains("2 labels name no class (metric accuracy): they are not "
                                           "from 0 to 2, and not -100"),
                         MetricError);
    CHECK(over<IgnoreIndex<3, IgnoreIndex<255, Accuracy>>>(set).result() == 1);
  }
  CHECK(over<Accuracy>({logits, at::tensor({0, 1, -100, 0})}).result() == 1);
  CHECK_THROWS_AS(static_cast<void>(over<Accuracy>({logits, at::tensor({0, 1, -1, 0})}).result()),
                  MetricError);
  // One logit a label has two classes.
  CHECK_THROWS_AS(static_cast<void>(over<Accuracy>({at::zeros({2}), at::tensor({0, 2})}).result()),
                  MetricError);
}

}  // namespace frugal_test::metrics_accuracy
