// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/run/metrics.hpp>

#include <limits>
#include <string>
#include <vector>

namespace frugal_test::run_metrics {

using frugal::MetricError;
using frugal::Metrics;

Metrics two() {
  Metrics metrics;
  metrics.set("loss", 0.5);
  metrics.set("accuracy", 0.9);
  return metrics;
}

TEST_CASE("a metric is read by its name") {
  CHECK(two()["loss"] == 0.5);
  CHECK(two()["accuracy"] == 0.9);
  CHECK(two().has("loss"));
  CHECK_FALSE(two().has("los"));
}

TEST_CASE("setting a metric again replaces its value") {
  Metrics metrics = two();
  metrics.set("loss", 0.25);
  CHECK(metrics.size() == 2);
  CHECK(metrics["loss"] == 0.25);
  CHECK(metrics.begin()->first == "loss");
}

TEST_CASE("an unknown metric is an error that lists the known ones") {
  Metrics const metrics = two();
  CHECK_THROWS_WITH_AS(metrics["f1"],
                       "frugal: no metric 'f1' was measured (validation): there are: loss, "
                       "accuracy. Add the metric to Validate<...>, or watch one of those.",
                       MetricError);
}

TEST_CASE("an unknown metric among none reports that nothing was measured") {
  CHECK_THROWS_WITH_AS(Metrics()["loss"],
                       "frugal: no metric 'loss' was measured (validation): nothing was. Add the "
                       "metric to Validate<...>, or watch one of those.",
                       MetricError);
}

struct Copier {
  std::vector<std::string> names{};
  std::vector<double> values{};
  bool loading = false;
  void operator()(std::string const&, std::vector<std::string>& value) {
    loading ? value = names : names = value;
  }
  void operator()(std::string const&, std::vector<double>& value) {
    loading ? value = values : values = value;
  }
};

TEST_CASE("metrics survive a resume in their order") {
  Metrics saved = two();
  Copier archive;
  saved.persist(archive);
  CHECK(saved == two());
  archive.loading = true;
  Metrics loaded;
  loaded.set("stale", 1);
  loaded.persist(archive);
  CHECK(loaded == two());
}

}  // namespace frugal_test::run_metrics
