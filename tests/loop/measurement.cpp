// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/loop/measurement.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/state/state_dict.hpp>
#include <frugal/state/state_reader.hpp>
#include <frugal/state/state_writer.hpp>

#include "stand_ins.hpp"

#include <cmath>

namespace frugal_test::loop_measurement {

using namespace frugal_test::loop;
using frugal::detail::Measurement;

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

TEST_CASE("a measurement is the mean of the losses by their weights") {
  Measurement<> measurement;
  measurement.add({.value = at::tensor(2.0F), .weight = 3}, Batch{});
  measurement.add({.value = at::tensor(6.0F), .weight = 1}, Batch{});
  CHECK(measurement.result()["loss"] == 3.0);
}

TEST_CASE("metrics see the loss as the objective returned it, in every dtype") {
  for (at::ScalarType const type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    Measurement<LossSeen> measurement;
    measurement.add({.value = at::full({}, 2.0, type), .weight = 8}, Batch{});
    CHECK(measurement.result()["seen"] == 2.0);
    CHECK(measurement.result()["loss"] == 2.0);
  }
}

TEST_CASE("a batch of weight zero is measured and adds nothing") {
  Measurement<> measurement;
  CHECK(measurement.empty());
  measurement.add({.value = at::tensor(5.0F), .weight = 0}, Batch{});
  CHECK_FALSE(measurement.empty());
  CHECK(std::isnan(measurement.result()["loss"]));
  measurement.add({.value = at::tensor(3.0F), .weight = 2}, Batch{});
  CHECK(measurement.result()["loss"] == 3.0);
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
  frugal::Metrics const found = measurement.result();
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
  CHECK(measurement.result()["loss"] == 1);
  CHECK(measurement.result()["batches"] == 2);
  CHECK(measurement.result().table("confusion_matrix").equal(2 * at::eye(2, at::kLong)));
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
  CHECK(after.result()["loss"] == 3.0);
  CHECK(after.result()["batches"] == 2);
}

}  // namespace frugal_test::loop_measurement
