// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/ignore_index.hpp>
#include <frugal/metrics/precision_recall.hpp>
#include <frugal/metrics/roc_auc.hpp>
#include <frugal/metrics/top_k.hpp>

#include "cases.hpp"

namespace frugal_test::metrics_ignore_index {

using namespace frugal_test::metrics;

TEST_CASE("labels of another value are left out as those of -100 are") {
  Json const cases = reference("metrics.json").at("classes");
  Json const& which = case_named(cases, "labels that are left out");
  Set const set = set_in(which, at::kLong);
  Set const other{set.output, set.target.masked_fill(set.target.eq(ignored_label), 255)};
  for (double const found : every_way<IgnoreIndex<255, F1Score<Macro>>>(other)) {
    CHECK(found == doctest::Approx(which.at("f1_macro").get<double>()).epsilon(1e-12));
  }
  CHECK(over<IgnoreIndex<255, Accuracy>>(other).result() == which.at("accuracy").get<double>());
  CHECK(over<IgnoreIndex<255, RocAuc<Macro>>>(other).result() == over<RocAuc<Macro>>(set).result());
  CHECK(over(other, IgnoreIndex<0, Accuracy>{.label = 255}).result() ==
        which.at("accuracy").get<double>());
  CHECK(over(other, IgnoreIndex<255, TopK<>>{.metric = {.k = 2}}).result() ==
        which.at("top2").get<double>());
  CHECK(IgnoreIndex<255, TopK<>>{.metric = {.k = 2}}.own_name() == "top2");
  CHECK(IgnoreIndex<255, F1Score<Macro>>::name == "f1_macro");
  CHECK(IgnoreIndex<255, RocAuc<Macro>>().warning() == RocAuc<Macro>().warning());
  // The target of the batch is the caller's.
  CHECK(other.target.eq(255).sum().item<std::int64_t>() == 5);
}

TEST_CASE("labels of one byte, as a mask has them, are left out too") {
  // Of four pixels two are of no class, and one of the others is found; the second-best logit is
  // right for both.
  Set const set{
      at::tensor({9.0, 1.0, 0.0, 9.0, 1.0, 0.0, 9.0, 1.0, 0.0, 9.0, 1.0, 0.0}).view({4, 3}),
      at::tensor({0, 255, 1, 255}).to(at::kByte)};
  CHECK(over<IgnoreIndex<255, Accuracy>>(set).result() == 0.5);
  CHECK(over<IgnoreIndex<255, TopK<1>>>(set).result() == 0.5);
  CHECK(over<IgnoreIndex<255, TopK<2>>>(set).result() == 1);
  CHECK(over<IgnoreIndex<255, F1Score<Macro>>>(set).result() == doctest::Approx(1.0 / 3));
  // 255 is not -1 in one byte: it is a label, and of no class.
  CHECK_THROWS_AS(static_cast<void>(over<IgnoreIndex<-1, Accuracy>>(set).result()),
                  frugal::MetricError);
}

}  // namespace frugal_test::metrics_ignore_index
