// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/sampling/weighted.hpp>

#include <frugal/data/sampling/order.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_sampling_weighted {

using frugal::Cursor;
using frugal::WeightedPass;

static_assert(frugal::Order<WeightedPass>);

std::vector<std::uint64_t> read(WeightedPass pass, Cursor const& cursor) {
  pass.seek(cursor);
  std::vector<std::uint64_t> all, batch;
  for (auto slice = pass.advance(); slice.count != 0; slice = pass.advance()) {
    batch.resize(slice.count);
    pass.indices(slice, std::span(batch));
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

/// Pearson's statistic of counts against their expectation.
double chi_squared(std::vector<double> const& weights, std::vector<std::uint64_t> const& drawn) {
  std::vector<double> count(weights.size());
  for (std::uint64_t const i : drawn) ++count.at(i);
  double sum = 0;
  for (double const weight : weights) sum += weight;
  double statistic = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double const expected = weights[i] / sum * static_cast<double>(drawn.size());
    if (weights[i] == 0) {
      CHECK(count[i] == 0);
    } else {
      statistic += (count[i] - expected) * (count[i] - expected) / expected;
    }
  }
  return statistic;
}

TEST_CASE("samples come in proportion to their weights") {
  std::vector<double> const weights{1, 2, 0, 4, 0.5, 10, 0.25, 3};
  auto const drawn = read(WeightedPass(weights, {.batch = 64}, 200'000), {.seed = 3});
  CHECK(drawn.size() == 200'000);
  CHECK(chi_squared(weights, drawn) < 22.5);  // 6 degrees of freedom: exceeded once in 1,000
}

TEST_CASE("equal weights, one sample, and weights of very unlike size") {
  std::vector<double> const equal(50, 7.0);
  // 49 degrees of freedom: exceeded once in 1,000
  CHECK(chi_squared(equal, read(WeightedPass(equal, {.batch = 7}, 100'000), {})) < 85.4);
  CHECK(read(WeightedPass({2.5}, {.batch = 2}, 3), {}) == std::vector<std::uint64_t>{0, 0, 0});
  std::vector<double> const unlike{1e-300, 1, 1e-12, 1e9};
  for (std::uint64_t const i : read(WeightedPass(unlike, {.batch = 100}, 10'000), {}))
    CHECK(i == 3);
}

TEST_CASE("any place can be sought, whatever the batch") {
  std::vector<double> const weights{1, 2, 3, 4, 5};
  auto const all = read(WeightedPass(weights, {.batch = 3}, 17), {.seed = 9, .epoch = 4});
  for (std::uint64_t position = 0; position <= 17; ++position) {
    CAPTURE(position);
    auto const rest = read(WeightedPass(weights, {.batch = 5}, 17),
                           {.seed = 9, .epoch = 4, .position = position});
    CHECK(rest == std::vector(all.begin() + static_cast<std::ptrdiff_t>(position), all.end()));
  }
  CHECK(all != read(WeightedPass(weights, {.batch = 3}, 17), {.seed = 9, .epoch = 5}));
  CHECK(all != read(WeightedPass(weights, {.batch = 3}, 17), {.seed = 10, .epoch = 4}));
}

TEST_CASE(
    "an epoch has as many samples as there are weights, and drop_last leaves the ragged batch "
    "out") {
  WeightedPass const pass({1, 2, 3, 4, 5}, {.batch = 2});
  CHECK(pass.samples() == 5);
  CHECK(pass.batches() == 3);
  CHECK(read(WeightedPass({1, 2, 3, 4, 5}, {.batch = 2, .drop_last = true}), {}).size() == 4);
}

std::string what(std::vector<double> const& weights) {
  try {
    WeightedPass const pass(weights, {.batch = 2}, 0, "mine");
  } catch (frugal::SettingsError const& error) {
    CHECK(error.fault().where == "mine");
    return error.fault().what;
  }
  return "accepted";
}

TEST_CASE("weights that are no distribution are refused") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK(what({1, -2}) == "the weight of sample 1 is -2");
  CHECK(what({nan, 1}) == "the weight of sample 0 is nan");
  CHECK(what({1, infinity}) == "the weight of sample 1 is inf");
  CHECK(what({0, 0}) == "the weights of the samples add up to 0");
  CHECK(what({1e308, 1e308}) == "the weights of the samples add up to inf");
  CHECK_THROWS_AS(WeightedPass({}, {.batch = 2}), frugal::EmptySourceError);
}

TEST_CASE("balanced weights draw every class equally often") {
  std::vector<int> labels(90, 0);
  labels.insert(labels.end(), 9, 1);
  labels.push_back(2);
  auto const weights = frugal::balanced_weights(labels);
  std::vector<double> count(3);
  for (std::uint64_t const i : read(WeightedPass(weights, {.batch = 50}, 30'000), {.seed = 1})) {
    ++count[static_cast<std::size_t>(labels[i])];
  }
  for (double const each : count) CHECK(std::abs(each - 10'000) < 4 * std::sqrt(30'000 * 2.0 / 9));
}

}  // namespace frugal_test::data_sampling_weighted
