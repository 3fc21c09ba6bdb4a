// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/metrics/for_task.hpp>
#include <frugal/metrics/ignore_index.hpp>
#include <frugal/metrics/precision_recall.hpp>
#include <frugal/metrics/regression.hpp>
#include <frugal/metrics/roc_auc.hpp>

#include "cases.hpp"

#include <string>

namespace frugal_test::metrics_for_task {

using namespace frugal_test::metrics;

TEST_CASE("a metric of a task is that of its output and target") {
  Json const cases = reference("metrics.json").at("classes");
  Json const& which = case_named(cases, "labels that are left out");
  Set const set = set_in(which, at::kLong);
  at::Tensor const years = at::tensor({1.0, 2.0}), wanted = at::tensor({1.5, 4.0});
  ForTask<"digit", F1Score<Macro>> f1;
  ForTask<"age", MAE> mae;
  Loss const loss{.value = at::zeros({}),
                  .weight = 1,
                  .tasks = {{"digit", set.output, set.target}, {"age", years, wanted}}};
  // The batch's own target is of neither task.
  Batch const batch{.data = {}, .target = at::zeros({3})};
  f1.add(loss, batch);
  mae.add(loss, batch);
  CHECK(f1.result() == doctest::Approx(which.at("f1_macro").get<double>()).epsilon(1e-12));
  CHECK(mae.result() == 1.25);
  CHECK(resumed(mae).result() == 1.25);
  CHECK(together(mae, mae).result() == 1.25);
  CHECK(f1.name == "digit_f1_macro");
  CHECK(ForTask<"digit", IgnoreIndex<255, Accuracy>>::name == "digit_accuracy");
}

TEST_CASE("numbers and tables of a metric get the name of the task") {
  at::Tensor const logits = at::tensor({0.0, 1.0, 1.0, 0.0}).view({2, 2});
  ForTask<"digit", ConfusionMatrix> matrix;
  matrix.add(Loss{.value = at::zeros({}), .tasks = {{"digit", logits, at::tensor({1, 1})}}},
             Batch{});
  Metrics const found = matrix.result();
  CHECK(found.has("digit_balanced_accuracy"));
  CHECK(found.has("digit_cohen_kappa"));
  CHECK(found.table("digit_confusion_matrix").equal(at::tensor({0, 0, 1, 1}).view({2, 2})));
  CHECK(found.size() == 2);
}

TEST_CASE("a metric that cannot be computed says why in a task, and with ignored labels, too") {
  at::Tensor const logits = at::tensor({0.0, 1.0});
  ForTask<"spam", RocAuc<>> auc;
  auc.add(Loss{.value = at::zeros({}), .tasks = {{"spam", logits, at::tensor({1, 1})}}}, Batch{});
  RocAuc<> plain;
  add(plain, logits, at::tensor({1, 1}));
  REQUIRE(!plain.warning().empty());
  static_cast<void>(plain.result());
  static_cast<void>(auc.result());
  CHECK(auc.warning() == plain.warning());
  IgnoreIndex<255, RocAuc<>> ignoring;
  add(ignoring, logits, at::tensor({1, 1}));
  CHECK(ignoring.warning() == plain.warning());
}

TEST_CASE("a task that the objective does not return is a MetricError that names those it does") {
  auto const refusal = [](TaskOutputs const& tasks) -> std::string {
    try {
      tasks.of("age");
    } catch (MetricError const& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal({}).find("the objective returns no tasks") != std::string::npos);
  CHECK(refusal({{"years", {}, {}}, {"digit", {}, {}}})
            .find("the objective returned 'years', 'digit'") != std::string::npos);
  CHECK(refusal({{"age", {}, {}}, {"age", {}, {}}}).find("two tasks are called 'age'") !=
        std::string::npos);
  CHECK(refusal({{"age", {}, {}}}).empty());
}

}  // namespace frugal_test::metrics_for_task
