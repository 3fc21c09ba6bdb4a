// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/metrics.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include <limits>
#include <sstream>
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

/// What a checkpoint gives back, into metrics that had something else.
Metrics resumed(Metrics saved) {
  frugal::StateDict memory;
  frugal::StateWriter writer(memory);
  saved.persist(writer);
  writer.finish();
  Metrics loaded;
  loaded.set("stale", 1);
  loaded.set_table("stale", at::ones({1}));
  frugal::StateReader reader(memory);
  loaded.persist(reader);
  CHECK_FALSE(reader.unread());
  return loaded;
}

TEST_CASE("metrics survive a resume in their order") {
  CHECK((resumed(two()) == two()));
  CHECK((resumed(Metrics()) == Metrics()));
}

TEST_CASE("tables survive it too") {
  Metrics metrics = two();
  metrics.set_table("confusion_matrix", at::tensor({3, 1, 0, 2}).view({2, 2}));
  metrics.set_table("another", at::ones({1}));
  CHECK((resumed(metrics) == metrics));
  CHECK_FALSE((metrics == two()));
}

TEST_CASE("a table is not a number: it is read by its own name, and not gone over") {
  Metrics metrics = two();
  metrics.set_table("confusion_matrix", at::eye(2, at::kLong));
  CHECK(metrics.size() == 2);
  CHECK_FALSE(metrics.has("confusion_matrix"));
  CHECK(metrics.has_table("confusion_matrix"));
  CHECK(metrics.table("confusion_matrix").equal(at::eye(2, at::kLong)));
  CHECK_THROWS_WITH_AS(metrics.table("accuracy"),
                       doctest::Contains("no table 'accuracy' was measured (validation): there "
                                         "are: confusion_matrix"),
                       MetricError);
}

TEST_CASE("tables that were dropped are an error that says which ones a run keeps") {
  Metrics metrics = two();
  metrics.set_table("confusion_matrix", at::eye(2, at::kLong));
  metrics.drop_tables();
  CHECK((metrics == two()));
  CHECK_THROWS_WITH_AS(metrics.table("confusion_matrix"),
                       doctest::Contains("a run keeps the tables of its last validation alone"),
                       MetricError);
}

TEST_CASE("metrics are added with something before their names") {
  Metrics metrics = two();
  Metrics other;
  other.set("loss", 2);
  other.set_table("matrix", at::ones({1}));
  metrics.add(other, "shifted/");
  CHECK(metrics["loss"] == 0.5);
  CHECK(metrics["shifted/loss"] == 2);
  CHECK(metrics.has_table("shifted/matrix"));
}

TEST_CASE("metrics are printed in their order, without their tables") {
  std::ostringstream out;
  out << Metrics{};
  CHECK(out.str().empty());
  Metrics metrics;
  metrics.set("loss", 0.25);
  metrics.set("accuracy", 0.875);
  metrics.set_table("matrix", at::ones({1}));
  out << metrics;
  CHECK(out.str() == "loss 0.25, accuracy 0.875");
}

}  // namespace frugal_test::run_metrics
