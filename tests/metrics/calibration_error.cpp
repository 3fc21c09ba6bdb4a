// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/calibration_error.hpp>
#include <frugal/metrics/ignore_index.hpp>

#include "overlap_cases.hpp"

#include <cmath>
#include <limits>

namespace frugal_test::metrics_calibration_error {

using namespace frugal_test::metrics;

TEST_CASE("expected and maximum error are those of torchmetrics' bins") {
  int compared = 0;
  Json const file = reference("segmentation.json");
  for (char const* cases : {"classes", "two"}) {
    for (Json const& which : file.at(cases)) {
      CAPTURE(which.at("name").get<std::string>());
      for (Metrics const& found : every_result<CalibrationError<>>(set_in(which, at::kLong))) {
        CHECK(found["ece"] == doctest::Approx(which.at("ece").get<double>()).epsilon(1e-6));
        CHECK(found["mce"] == doctest::Approx(which.at("mce").get<double>()).epsilon(1e-6));
        ++compared;
      }
    }
  }
  CHECK(compared == 15);
}

TEST_CASE("of one bin it is the difference of accuracy and mean confidence") {
  // Confidences 1/2 and 3/4: softmax of (0, 0) and (log 3, 0); one of two is right.
  at::Tensor const logits = at::tensor({0.0, 0.0, std::log(3.0), 0.0}).view({2, 2});
  Metrics const found = over<CalibrationError<1>>({logits, at::tensor({0, 1})}).result();
  CHECK(found["ece"] == doctest::Approx(0.625 - 0.5).epsilon(1e-12));
  CHECK(found["mce"] == doctest::Approx(0.625 - 0.5).epsilon(1e-12));
}

TEST_CASE("the number of bins is a member, which a checkpoint must agree with") {
  Set const set{at::randn({12, 3}), at::randint(0, 3, {12}, at::kLong)};
  auto const few = over(set, CalibrationError<>{.bins = 4});
  CHECK(few.result() == over<CalibrationError<4>>(set).result());
  CHECK(resumed(few, CalibrationError<>{.bins = 4}).result() == few.result());
  CHECK_THROWS_WITH_AS(resumed(few, CalibrationError<>{}),
                       doctest::Contains("counted in 4 bins, and CalibrationError::bins is 15"),
                       MetricError);
  for (int const bins : {-1, 0, 10001}) {
    CHECK(says(refusal(set.output, set.target, CalibrationError<>{.bins = bins}),
               "CalibrationError::bins is " + std::to_string(bins)));
  }
}

TEST_CASE("nothing measured is NaN, and so is a NaN logit, but not of an ignored label") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(CalibrationError<>().result()["ece"]));
  at::Tensor const logits = at::tensor({nan, 0.0, 1.0, 0.0}).view({2, 2});
  CHECK(std::isnan(over<CalibrationError<>>({logits, at::tensor({0, 0})}).result()["ece"]));
  CHECK(std::isnan(over<CalibrationError<>>({logits, at::tensor({0, 0})}).result()["mce"]));
  double const one =
      over<CalibrationError<>>({logits.narrow(0, 1, 1), at::tensor({0})}).result()["ece"];
  CHECK(over<CalibrationError<>>({logits, at::tensor({-100, 0})}).result()["ece"] == one);
  CHECK(std::isnan(over<CalibrationError<>>({logits, at::tensor({-100, -100})}).result()["ece"]));
}

TEST_CASE("logits of 16 bits are widened, and IgnoreIndex works") {
  Json const file = reference("segmentation.json");
  Set const set = set_in(case_named(file.at("classes"), "ignored pixels"), at::kLong);
  for (at::ScalarType const type : {at::kHalf, at::kBFloat16}) {
    at::Tensor const half = set.output.to(type);
    CHECK(over<CalibrationError<>>({half, set.target}).result()["ece"] ==
          over<CalibrationError<>>({half.to(at::kFloat), set.target}).result()["ece"]);
  }
  at::Tensor const other = set.target.masked_fill(set.target.eq(ignored_label), 9);
  CHECK(over<IgnoreIndex<9, CalibrationError<>>>({set.output, other}).result()["ece"] ==
        over<CalibrationError<>>(set).result()["ece"]);
}

TEST_CASE("labels that name no class are refused") {
  CHECK(says(refusal<CalibrationError<>>(at::zeros({2, 3}), at::tensor({1, 3})),
             "1 labels name no class (metric ece)"));
  CHECK(says(refusal<CalibrationError<>>(at::zeros({3}), at::tensor({0.5F, 1.0F, 0.0F})),
             "1 labels"));
}

}  // namespace frugal_test::metrics_calibration_error
