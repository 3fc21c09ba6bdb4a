// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/top_k.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>

namespace frugal_test::metrics_top_k {

using namespace frugal_test::metrics;

TEST_CASE("the top 2 are those of scikit-learn, over ragged batches and without ignored labels") {
  Json const cases = reference("metrics.json").at("classes");
  for (Json const& which : cases) {
    CAPTURE(which.at("name").get<std::string>());
    Set const set = set_in(which, at::kLong);
    for (double const found : every_way<TopK<2>>(set)) {
      CHECK(found == which.at("top2").get<double>());
    }
    CHECK(over<TopK<1>>(set).result() == over<Accuracy>(set).result());
    CHECK(over(set, TopK<>{.k = 2}).result() == which.at("top2").get<double>());
  }
}

TEST_CASE("of equal logits the first are ahead, as in Accuracy") {
  Set const set{at::ones({4, 4}), at::arange(4)};
  CHECK(over<TopK<1>>(set).result() == over<Accuracy>(set).result());
  CHECK(over<TopK<3>>(set).result() == 0.75);
  CHECK(over<TopK<4>>(set).result() == 1);
}

TEST_CASE("a NaN is not right, and a label that is no class is refused") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(over<TopK<2>>({at::full({3, 4}, nan), at::zeros({3}, at::kLong)}).result() == 0);
  auto const outside = over<TopK<2>>({at::ones({3, 4}), at::tensor({-1, 7, 2})});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(outside.result()),
      doctest::Contains("2 labels name no class (metric top2): they are not from 0 "
                        "to 3, and not -100"),
      frugal::MetricError);
  // The label's own logit is the largest, and another one is NaN.
  CHECK(over<TopK<2>>({at::tensor({9.0, nan, 0.0, 0.0}).view({1, 4}), at::tensor({0})}).result() ==
        0);
  CHECK(std::isnan(over<TopK<2>>({at::ones({2, 4}), at::full({2}, -100, at::kLong)}).result()));
}

TEST_CASE("more than there are classes is refused with both numbers; names have the number") {
  std::string const error = refusal<TopK<5>>(at::zeros({2, 3}), at::zeros({2}, at::kLong));
  CHECK(says(error, "the output has 3 classes, and TopK::k is 5"));
  CHECK(says(refusal<TopK<1>>(at::zeros({2}), at::zeros({2}, at::kLong)), "output is [2] Float"));
  CHECK(TopK<5>::name == "top5");
  CHECK(TopK<120>::name == "top120");
  CHECK(TopK<>{}.own_name() == "top5");
  CHECK(TopK<>{.k = 120}.own_name() == "top120");
  at::Tensor const output = at::zeros({2, 3}), target = at::zeros({2}, at::kLong);
  CHECK(says(refusal(output, target, TopK<>{.k = 4}), "has 3 classes, and TopK::k is 4"));
  CHECK(says(refusal(output, target, TopK<>{.k = 0}), "TopK::k is 0"));
  CHECK(says(refusal(output, target, TopK<>{.k = -1}), "TopK::k is -1"));
}

}  // namespace frugal_test::metrics_top_k
