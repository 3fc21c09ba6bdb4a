// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/dice.hpp>
#include <frugal/metrics/precision_recall.hpp>

#include "overlap_cases.hpp"

namespace frugal_test::metrics_dice {

using namespace frugal_test::metrics;

TEST_CASE("Dice is that of scikit-learn and of torchmetrics over the whole set") {
  CHECK(overlaps_equal_reference<Dice>("classes") == 12);
  CHECK(overlaps_equal_reference<Dice>("two") == 3);
}

TEST_CASE("its mean is F1Score<Macro>") {
  Json const file = reference("segmentation.json");
  for (Json const& which : file.at("classes")) {
    Set const set = set_in(which, at::kLong);
    CHECK(over<Dice>(set).result()["dice"] ==
          doctest::Approx(over<F1Score<Macro>>(set).result()).epsilon(1e-14));
  }
}

TEST_CASE("no label is NaN without a table, and a model that has diverged scores 0") {
  nothing_and_nan<Dice>();
}

TEST_CASE("without the labels of a class the mean is over the other classes") {
  leaves_a_class_out<Dice>();
}

TEST_CASE("half precision decides as single precision, with another ignored label too") {
  other_types<Dice>();
}

}  // namespace frugal_test::metrics_dice
