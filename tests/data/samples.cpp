// SPDX-License-Identifier: Apache-2.0
#include "sources.hpp"

#include <doctest/doctest.h>

#include <frugal/data/pad.hpp>
#include <frugal/data/samples.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace frugal_test::data_samples {

using namespace frugal_test::data_sources;
using frugal::from_samples;
using frugal::Pad;
using frugal::PaddedBatch;
using Sample = std::pair<at::Tensor, at::Tensor>;

/// Sample i has 1 + i mod 5 positions of the value i.
std::vector<Sample> ragged(std::int64_t n) {
  std::vector<Sample> all;
  for (std::int64_t i = 0; i < n; ++i) {
    all.emplace_back(at::full({1 + i % 5}, i, at::kLong), at::full({1 + i % 5}, i, at::kLong));
  }
  return all;
}

std::vector<std::int64_t> first_of(std::vector<PaddedBatch> const& batches) {
  std::vector<std::int64_t> all;
  for (auto const& batch : batches) {
    for (std::int64_t i = 0; i < batch.data.size(0); ++i) {
      all.push_back(batch.data[i][0].item<std::int64_t>());
    }
  }
  return all;
}

TEST_CASE("samples of one shape are stacked, in the order that a resident source has") {
  frugal::Batch const set = numbered(20);
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < 20; ++i) samples.emplace_back(set.data[i], set.target[i]);
  auto source = from_samples(samples, {.batch = 6});
  frugal::TensorDataset resident(set, {.batch = 6});
  std::vector<frugal::Batch> batches;
  for (auto& [data, target] : epoch_of(source, {.seed = 2})) batches.push_back({data, target});
  CHECK(same(batches, epoch_of(resident, {.seed = 2})));
  CHECK(source.samples() == 20);
}

TEST_CASE("ragged samples are padded batch by batch") {
  auto source = from_samples(ragged(9), {.batch = 4, .shuffle = false}, Pad{.value = -1});
  auto const batches = rest(source);
  REQUIRE(batches.size() == 3);
  CHECK(batches[0].data.sizes() == at::IntArrayRef({4, 4}));
  CHECK(batches[1].data.sizes() == at::IntArrayRef({4, 5}));
  CHECK(first_of(batches) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("buckets measure the samples, pad less, and go on at any batch") {
  auto const made = [] {
    return from_samples(ragged(60), {.batch = 4}, Pad{}, frugal::Buckets{.pool = 15});
  };
  auto bucketed = made();
  auto plain = from_samples(ragged(60), {.batch = 4}, Pad{});
  auto const padding = [](auto& source) {
    std::int64_t all = 0;
    for (auto const& batch : epoch_of(source, {.seed = 1})) {
      all += batch.mask.numel() - batch.positions();
    }
    return all;
  };
  CHECK(padding(bucketed) == 0);
  CHECK(padding(plain) > 0);
  auto const whole = first_of(epoch_of(bucketed, {.seed = 1, .epoch = 4}));
  auto later = made();
  auto const left = first_of(epoch_of(later, {.seed = 1, .epoch = 4, .position = 20}));
  CHECK(left == std::vector(whole.begin() + 20, whole.end()));
}

TEST_CASE("a collate function of one's own takes the samples, and their numbers if it likes") {
  auto counting = from_samples(std::vector{at::ones({2}), at::ones({3})}, {.batch = 2},
                               [](std::vector<at::Tensor> const& some) { return at::cat(some); });
  CHECK(counting.next()->size(0) == 5);
  auto numbering = from_samples(
      std::vector{at::ones({2}), at::ones({3}), at::ones({1})}, {.batch = 2, .shuffle = false},
      [](std::vector<at::Tensor> const&, std::span<std::size_t const> which) {
        return at::tensor(std::vector<std::int64_t>(which.begin(), which.end()));
      });
  numbering.next();
  CHECK(numbering.next()->equal(at::tensor({2}, at::kLong)));
}

TEST_CASE("an error of a collate function names the sample by its number in the set") {
  auto samples = ragged(20);
  samples[13].first = at::ones({2}, at::kFloat);
  auto source = from_samples(samples, {.batch = 4, .shuffle = false}, Pad{});
  for (int i = 0; i < 3; ++i) source.next();
  CHECK_THROWS_WITH_AS(source.next(),
                       "frugal: samples of one batch differ in type (data of sample 13): it is [2] "
                       "Float, and that of sample 12 is [3] Long. Convert them in the data set.",
                       frugal::DataError);
}

TEST_CASE("no samples are refused") {
  CHECK_THROWS_AS(from_samples(std::vector<Sample>{}), frugal::EmptySourceError);
}

}  // namespace frugal_test::data_samples
