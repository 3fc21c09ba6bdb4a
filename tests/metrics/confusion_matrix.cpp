// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/confusion_matrix.hpp>

#include "cases.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace frugal_test::metrics_confusion_matrix {

using namespace frugal_test::metrics;

at::Tensor matrix_in(Json const& which) {
  auto const rows = which.at("confusion_matrix").get<std::vector<std::vector<std::int64_t>>>();
  std::vector<at::Tensor> all;
  for (auto const& row : rows) all.push_back(at::tensor(row));
  return at::stack(all);
}

TEST_CASE("the matrix, balanced accuracy and Cohen's kappa are those of scikit-learn") {
  Json const file = reference("metrics.json");
  int compared = 0;
  for (char const* const kind : {"classes", "two"}) {
    for (Json const& which : file.at(kind)) {
      CAPTURE(which.at("name").get<std::string>());
      Set const set = set_in(which, at::kLong);
      std::int64_t const count = set.output.size(0);
      Metrics const found = over<ConfusionMatrix>(set).result();
      CHECK(found.table("confusion_matrix").equal(matrix_in(which)));
      Metrics const of_two =
          together(resumed(over<ConfusionMatrix>(set, 0, 4)), over<ConfusionMatrix>(set, 4, count))
              .result();
      CHECK((of_two == found));
      if (!which.contains("cohen_kappa")) continue;
      CHECK(found["balanced_accuracy"] ==
            doctest::Approx(which.at("balanced_accuracy").get<double>()).epsilon(1e-12));
      CHECK(found["cohen_kappa"] ==
            doctest::Approx(which.at("cohen_kappa").get<double>()).epsilon(1e-12));
      ++compared;
    }
  }
  CHECK(compared == 4);
}

TEST_CASE("a table is [labels, predictions] in whole numbers, empty where nothing was measured") {
  ConfusionMatrix matrix;
  add(matrix, at::tensor({2.0, -1.0, 1.0}), at::tensor({0, 0, 1}));
  CHECK(matrix.result().table("confusion_matrix").equal(at::tensor({1, 1, 0, 1}).view({2, 2})));
  Metrics const none = ConfusionMatrix().result();
  CHECK(none.table("confusion_matrix").numel() == 0);
  CHECK(std::isnan(none["balanced_accuracy"]));
}

TEST_CASE("a NaN logit is a wrong prediction: the class after the label") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  ConfusionMatrix matrix;
  add(matrix, at::full({3, 3}, nan), at::tensor({0, 1, 2}));
  Metrics const found = matrix.result();
  CHECK(found["balanced_accuracy"] == 0);
  CHECK(
      found.table("confusion_matrix").equal(at::tensor({0, 1, 0, 0, 0, 1, 1, 0, 0}).view({3, 3})));
}

TEST_CASE("a target of probabilities is refused, not cut off to class 0") {
  CHECK(says(refusal<ConfusionMatrix>(at::zeros({2}), at::tensor({0.95F, 0.05F})),
             "2 labels name no class (metric confusion_matrix)"));
}

}  // namespace frugal_test::metrics_confusion_matrix
