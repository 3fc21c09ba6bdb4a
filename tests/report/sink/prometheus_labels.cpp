// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/sink/prometheus_labels.hpp>

namespace frugal_test::policy_sink_prometheus_labels {

using frugal::PrometheusLabels;
using frugal::detail::checked_labels;
using frugal::detail::is_label_name;

TEST_CASE("names of labels are letters, digits and underscores") {
  CHECK(is_label_name("job"));
  CHECK(is_label_name("_a1"));
  for (char const* name : {"", "1a", "a-b", "__a", "event", "le", "quantile", "a b"})
    CHECK_FALSE(is_label_name(name));
}

TEST_CASE("the run's folder is a label, unless the user has set that one") {
  CHECK(checked_labels({}, "runs/a", "here") == PrometheusLabels{{"run", "runs/a"}});
  CHECK(checked_labels({{"run", "x"}}, "runs/a", "here") == PrometheusLabels{{"run", "x"}});
  CHECK(checked_labels({{"job", "x"}}, "", "here") == PrometheusLabels{{"job", "x"}});
}

TEST_CASE("a label that each scrape has is told, since Prometheus renames it") {
  using frugal::detail::label_advice;
  CHECK(label_advice({{"model", "x"}, {"run", "y"}}, "Prometheus").empty());
  CHECK(label_advice({{"job", "x"}}, "Prometheus").starts_with("Prometheus has the label job, "));
  CHECK(label_advice({{"job", "x"}, {"instance", "y"}}, "Prometheus")
            .starts_with("Prometheus has the label instance and job, "));
}

TEST_CASE("a label that promtool complains of is refused, with the reason") {
  CHECK_THROWS_WITH_AS(static_cast<void>(checked_labels({{"le", "1"}}, "", "Prometheus::labels")),
                       doctest::Contains("belong to histograms and summaries"),
                       frugal::SettingsError);
}

}  // namespace frugal_test::policy_sink_prometheus_labels
