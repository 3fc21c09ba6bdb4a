// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/measure/measurement.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/metrics/roc_auc.hpp>

#include "core/loop/stand_ins.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace frugal_test::loop_measurement {

using namespace frugal_test::loop;
using frugal::detail::Measurement;

template <class Measured>
frugal::Metrics result_of(Measured& measured) {
  return measured.result([](std::string const&) {});
}

/// Remembers the losses that it is shown.
struct LossSeen {
  static constexpr std::string_view name = "seen";
  template <class B>
  void add(Loss const& loss, B const&) {
    sum += loss.value.item<double>();
  }
  double result() const { return sum; }
  double sum = 0;
};

/// Names its numbers when it runs.
struct NamesAtRunTime {
  static constexpr std::string_view name = "per_class";
  static inline std::string_view called = "class_0";
  template <class B>
  void add(Loss const&, B const&) {}
  frugal::Metrics result() const {
    frugal::Metrics numbers;
    numbers.set(called, 0.5);
    return numbers;
  }
};

TEST_CASE("a number that a metric names when it runs replaces no other") {
  for (std::string_view const name : {"loss", "step", "seconds", "seen"}) {
    NamesAtRunTime::called = name;
    Measurement<LossSeen, NamesAtRunTime> measurement;
    measurement.add({.value = at::tensor(3.0F), .weight = 2}, Batch{});
    CHECK_THROWS_WITH_AS(
        static_cast<void>(result_of(measurement)),
        doctest::Contains(("the metric 'per_class' has a number '" + std::string(name)).c_str()),
        frugal::MetricError);
    std::vector<std::string> advice;
    frugal::Metrics const noted =
        measurement.result([&](std::string const& text) { advice.push_back(text); },
                           frugal::detail::MetricErrors::noted);
    CHECK(noted["loss"] == 3.0);
    CHECK(noted["seen"] == 3.0);
    CHECK(std::isnan(noted["per_class"]));
    REQUIRE(advice.size() == 1);
    CHECK(advice[0].find("Give it another name") != std::string::npos);
  }
  NamesAtRunTime::called = "class_0";
  Measurement<LossSeen, NamesAtRunTime> measurement;
  measurement.add({.value = at::tensor(3.0F), .weight = 2}, Batch{});
  CHECK(result_of(measurement)["class_0"] == 0.5);
}

TEST_CASE("a measurement is the mean of the losses by their weights") {
  Measurement<> measurement;
  measurement.add({.value = at::tensor(2.0F), .weight = 3}, Batch{});
  measurement.add({.value = at::tensor(6.0F), .weight = 1}, Batch{});
  CHECK(result_of(measurement)["loss"] == 3.0);
}

TEST_CASE("metrics see the loss as the objective returned it, in every dtype") {
  for (at::ScalarType const type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    Measurement<LossSeen> measurement;
    measurement.add({.value = at::full({}, 2.0, type), .weight = 8}, Batch{});
    CHECK(result_of(measurement)["seen"] == 2.0);
    CHECK(result_of(measurement)["loss"] == 2.0);
  }
}

TEST_CASE("a batch of weight zero is measured and adds nothing") {
  Measurement<> measurement;
  CHECK(measurement.empty());
  measurement.add({.value = at::tensor(5.0F), .weight = 0}, Batch{});
  CHECK_FALSE(measurement.empty());
  CHECK(std::isnan(result_of(measurement)["loss"]));
  measurement.add({.value = at::tensor(3.0F), .weight = 2}, Batch{});
  CHECK(result_of(measurement)["loss"] == 3.0);
}

TEST_CASE("the loss of a batch of weight 0 is never read, and what is over nothing is said so") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> advice;
  auto const advise = [&](std::string const& text) { advice.push_back(text); };
  Measurement<> measurement;
  measurement.add({.value = at::tensor(nan), .weight = 0}, Batch{});
  CHECK(std::isnan(measurement.result(advise)["loss"]));
  REQUIRE(advice.size() == 1);
  CHECK(says(advice[0], "no label counts"));
  measurement.add({.value = at::tensor(3.0F), .weight = 2}, Batch{});
  measurement.add({.value = at::tensor(nan), .weight = 0}, Batch{});
  CHECK(measurement.result(advise)["loss"] == 3.0);
  CHECK(advice.size() == 1);
}

/// Fails at a batch, or in the end.
template <bool InTheEnd>
struct Failing {
  static constexpr std::string_view name = "failing";
  template <class B>
  void add(Loss const&, B const&) {
    if (!InTheEnd && ++batches == 2) throw std::runtime_error("no such class");
  }
  double result() const {
    if (InTheEnd) throw std::runtime_error("no such class");
    return batches;
  }
  template <class Archive>
  void persist(Archive& archive) {
    archive("batches", batches);
  }
  double batches = 0;
};

TEST_CASE_TEMPLATE("a metric that fails is NaN with advice where training must go on", Metric,
                   Failing<false>, Failing<true>) {
  using frugal::detail::MetricErrors;
  Loss const loss{.value = at::tensor(1.0F), .weight = 1};
  auto const measure = [&](MetricErrors errors, auto const& advise) {
    Measurement<Metric, LossSeen> measurement;
    for (int i = 0; i < 3; ++i) measurement.add(loss, Batch{}, errors);
    return measurement.result(advise, errors);
  };
  std::vector<std::string> advice;
  auto const advise = [&](std::string const& text) { advice.push_back(text); };
  CHECK_THROWS_AS(measure(MetricErrors::thrown, advise), std::runtime_error);
  frugal::Metrics const found = measure(MetricErrors::noted, advise);
  CHECK(std::isnan(found["failing"]));
  CHECK(found["seen"] == 3);  // the others go on
  CHECK(found["loss"] == 1);
  REQUIRE(advice.size() == 1);
  CHECK(says(advice[0], "failing is NaN, because of an error: no such class"));
}

TEST_CASE("a metric of several numbers that fails has them all, as NaN") {
  Measurement<frugal::ConfusionMatrix> measurement;
  measurement.add({.value = at::tensor(1.0F), .weight = 1, .output = at::eye(2)},
                  Batch{.data = {}, .target = at::tensor({0, 7})});
  std::string advice;
  frugal::Metrics const found = measurement.result([&](std::string const& text) { advice = text; },
                                                   frugal::detail::MetricErrors::noted);
  CHECK(std::isnan(found["balanced_accuracy"]));
  CHECK(std::isnan(found["cohen_kappa"]));
  CHECK(says(advice, "1 labels name no class"));
}

/// Its number has a name with `k`, and it fails once it has seen a batch.
struct HitsAt {
  static constexpr std::string_view name = "hits";
  int k = 5;
  bool fails = false;
  void each_option(auto&& visit) { visit("k", k, "of the name"); }
  template <class B>
  void add(Loss const&, B const&) {
    fails = true;
  }
  frugal::Metrics result() const {
    if (fails) throw std::runtime_error("no such class");
    frugal::Metrics numbers;
    numbers.set("hits_at_" + std::to_string(k), 0);
    return numbers;
  }
};

TEST_CASE("a metric that fails has the names of its members, as NaN") {
  Measurement<HitsAt> measurement(std::tuple<HitsAt>(HitsAt{.k = 3}));
  measurement.add({.value = at::tensor(1.0F), .weight = 1}, Batch{});
  frugal::Metrics const found =
      measurement.result([](std::string const&) {}, frugal::detail::MetricErrors::noted);
  CHECK(found.has("hits_at_3"));
  CHECK_FALSE(found.has("hits_at_5"));
}

TEST_CASE("a NaN metric is advised, with its own reason where it has one") {
  std::vector<std::string> advice;
  Measurement<frugal::RocAuc<>, frugal::Accuracy> measurement;
  measurement.add({.value = at::tensor(1.0F), .weight = 1, .output = at::ones({3})},
                  Batch{.data = {}, .target = at::ones({3}, at::kLong)});
  frugal::Metrics const found =
      measurement.result([&](std::string const& text) { advice.push_back(text); });
  CHECK(std::isnan(found["roc_auc"]));
  CHECK(found["accuracy"] == 1);
  REQUIRE(advice.size() == 1);
  CHECK(says(advice[0], "roc_auc is NaN: 3 of 3 labels are of class 1"));
}

TEST_CASE("that a metric has failed survives a resume") {
  using frugal::detail::MetricErrors;
  Measurement<Failing<false>> before;
  Loss const loss{.value = at::tensor(1.0F), .weight = 1};
  for (int i = 0; i < 2; ++i) before.add(loss, Batch{}, MetricErrors::noted);
  frugal::StateDict saved;
  frugal::StateWriter writer(saved);
  before.persist(writer);
  Measurement<Failing<false>> after;
  frugal::StateReader reader(saved);
  after.persist(reader);
  CHECK_FALSE(reader.unread());
  CHECK(std::isnan(result_of(after)["failing"]));
}

/// Counts batches, and can be added up and saved.
struct Batches {
  static constexpr std::string_view name = "batches";
  template <class B>
  void add(Loss const&, B const&) {
    ++count;
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    count = sum(count);
  }
  double result() const { return count; }
  template <class Archive>
  void persist(Archive& archive) {
    archive("count", count);
  }
  double count = 0;
};

TEST_CASE("a metric of several results puts each under its own name, tables too") {
  Measurement<Batches, frugal::ConfusionMatrix> measurement;
  measurement.add({.value = at::tensor(1.0F), .weight = 2, .output = at::eye(2)},
                  Batch{.data = {}, .target = at::arange(2)});
  frugal::Metrics const found = result_of(measurement);
  CHECK(found["balanced_accuracy"] == 1);
  CHECK(found["batches"] == 1);
  CHECK(found.table("confusion_matrix").equal(at::eye(2, at::kLong)));
}

TEST_CASE("losses and metrics of several processes are added up, numbers and tensors") {
  Measurement<Batches, frugal::ConfusionMatrix> measurement;
  measurement.add({.value = at::tensor(1.0F), .weight = 2, .output = at::eye(2)},
                  Batch{.data = {}, .target = at::arange(2)});
  // The other one has the same.
  measurement.reduce([](frugal::Quantity, auto const& value) { return value + value; });
  CHECK(result_of(measurement)["loss"] == 1);
  CHECK(result_of(measurement)["batches"] == 2);
  CHECK(result_of(measurement).table("confusion_matrix").equal(2 * at::eye(2, at::kLong)));
}

TEST_CASE("a measurement that is saved in its middle resumes there") {
  Measurement<Batches> before;
  before.add({.value = at::tensor(2.0F), .weight = 3}, Batch{});
  frugal::StateDict saved;
  frugal::StateWriter writer(saved);
  before.persist(writer);
  Measurement<Batches> after;
  after.add({.value = at::tensor(100.0F), .weight = 1}, Batch{});
  frugal::StateReader reader(saved);
  after.persist(reader);
  CHECK_FALSE(after.empty());
  CHECK_FALSE(reader.unread());
  after.add({.value = at::tensor(6.0F), .weight = 1}, Batch{});
  CHECK(result_of(after)["loss"] == 3.0);
  CHECK(result_of(after)["batches"] == 2);
}

}  // namespace frugal_test::loop_measurement
