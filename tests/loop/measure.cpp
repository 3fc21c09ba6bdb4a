// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/loop/measure.hpp>

#include "stand_ins.hpp"

#include <cmath>

namespace frugal_test::loop_measure {

using namespace frugal_test::loop;
using frugal::detail::Measurement;

/// Records the losses that it receives.
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

TEST_CASE("metrics receive the loss as the objective returned it, in every dtype") {
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

TEST_CASE("accuracy without the module's output is a MetricError that says what to return") {
  frugal::Accuracy accuracy;
  auto const error = thrown_by<MetricError>(
      [&] { accuracy.add(Loss{.value = at::zeros({})}, batch_of_size(4, 1)); });
  REQUIRE(error);
  CHECK(says(error->what(), ".output = logits"));
}

}  // namespace frugal_test::loop_measure
