// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/data/sampling/buckets.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

namespace frugal_test::data_buckets {

using frugal::BucketPass;
using frugal::Buckets;
using frugal::Cursor;
using frugal::LoaderOptions;
using Batches = std::vector<std::vector<std::uint64_t>>;

/// Lengths from 1 to 50 in no order.
std::vector<std::int64_t> lengths(std::uint64_t n) {
  std::vector<std::int64_t> all;
  for (std::uint64_t i = 0; i < n; ++i) all.push_back(1 + static_cast<std::int64_t>(i * 37 % 50));
  return all;
}

BucketPass pass_of(std::uint64_t n, LoaderOptions loading, std::int64_t pool = 4) {
  return {n, loading, Buckets{.lengths = lengths(n), .pool = pool}, "test"};
}

Batches rest(BucketPass& pass) {
  Batches all;
  for (auto slice = pass.advance(); slice.count != 0; slice = pass.advance()) {
    std::vector<std::uint64_t> some(slice.count);
    pass.indices(slice, std::span(some));
    all.push_back(some);
  }
  return all;
}

Batches epoch_of(BucketPass pass, Cursor const& cursor) {
  pass.seek(cursor);
  return rest(pass);
}

std::vector<std::uint64_t> flat(Batches const& batches) {
  std::vector<std::uint64_t> all;
  for (auto const& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST_CASE("every sample comes once an epoch, for sizes around those of batches and pools") {
  for (bool const shuffle : {true, false}) {
    for (std::uint64_t const n : {1U, 7U, 8U, 31U, 32U, 33U, 63U, 64U, 65U, 200U}) {
      auto const batches = epoch_of(pass_of(n, {.batch = 8, .shuffle = shuffle}), {.seed = 3});
      CHECK(batches.size() == (n + 7) / 8);
      for (std::size_t i = 0; i + 1 < batches.size(); ++i) CHECK(batches[i].size() == 8);
      auto all = flat(batches);
      std::sort(all.begin(), all.end());
      std::vector<std::uint64_t> wanted(n);
      std::iota(wanted.begin(), wanted.end(), 0);
      CHECK(all == wanted);
    }
  }
}

TEST_CASE("the batches of a pool do not overlap in length") {
  auto const all = lengths(320);
  auto const batches = epoch_of(pass_of(320, {.batch = 8}, 10), {.seed = 3});
  for (std::size_t first = 0; first < batches.size(); first += 10) {
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
    for (std::size_t i = first; i < first + 10; ++i) {
      auto const [low, high] = std::minmax_element(batches[i].begin(), batches[i].end(),
                                                   [&](auto a, auto b) { return all[a] < all[b]; });
      spans.emplace_back(all[*low], all[*high]);
    }
    CHECK_FALSE(std::is_sorted(spans.begin(), spans.end()));
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i - 1].second <= spans[i].first);
  }
}

TEST_CASE("a pool larger than the set sorts all of it") {
  auto const all = lengths(100);
  auto const samples =
      flat(epoch_of(pass_of(100, {.batch = 8, .shuffle = false}, std::int64_t{1} << 60), {}));
  CHECK(std::is_sorted(samples.begin(), samples.end(),
                       [&](auto a, auto b) { return all[a] < all[b]; }));
}

TEST_CASE("the order is a function of seed and epoch, and changes with either") {
  auto const of = [](Cursor const& cursor) { return epoch_of(pass_of(200, {.batch = 8}), cursor); };
  CHECK(of({.seed = 1, .epoch = 2}) == of({.seed = 1, .epoch = 2}));
  CHECK(of({.seed = 1, .epoch = 2}) != of({.seed = 1, .epoch = 3}));
  CHECK(of({.seed = 1, .epoch = 2}) != of({.seed = 2, .epoch = 2}));
}

TEST_CASE("samples meet in other batches in other epochs") {
  std::set<std::uint64_t> met;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    for (auto const& batch : epoch_of(pass_of(200, {.batch = 8}), {.seed = 1, .epoch = epoch})) {
      if (std::find(batch.begin(), batch.end(), 5U) == batch.end()) continue;
      met.insert(batch.begin(), batch.end());
    }
  }
  CHECK(met.size() > 16);
}

TEST_CASE("an epoch resumes at any position, within a batch too, as if uninterrupted") {
  auto const whole = flat(epoch_of(pass_of(77, {.batch = 8}, 3), {.seed = 5, .epoch = 1}));
  for (std::uint64_t position = 0; position <= 77; ++position) {
    auto const left =
        epoch_of(pass_of(77, {.batch = 8}, 3), {.seed = 5, .epoch = 1, .position = position});
    CHECK(flat(left) ==
          std::vector(whole.begin() + static_cast<std::ptrdiff_t>(position), whole.end()));
    if (!left.empty()) CHECK(left[0].size() == std::min(8 - position % 8, 77 - position));
  }
}

TEST_CASE("drop_last leaves out the ragged batch, from any position") {
  CHECK(epoch_of(pass_of(77, {.batch = 8, .drop_last = true}), {}).size() == 9);
  CHECK(pass_of(77, {.batch = 8, .drop_last = true}).batches() == 9);
  CHECK(epoch_of(pass_of(77, {.batch = 8, .drop_last = true}), {.position = 75}).empty());
  CHECK(flat(epoch_of(pass_of(77, {.batch = 8, .drop_last = true}), {.position = 69})).size() == 3);
}

TEST_CASE("a pass that was never sought stands at the beginning of epoch 0 of seed 0") {
  BucketPass pass = pass_of(77, {.batch = 8});
  CHECK(rest(pass) == epoch_of(pass_of(77, {.batch = 8}), {}));
}

TEST_CASE("lengths for other samples, an empty pool and a cursor behind the end are refused") {
  CHECK_THROWS_WITH_AS((BucketPass{9, LoaderOptions{}, Buckets{.lengths = lengths(7)}, "set"}),
                       "frugal: there is not one length for each sample (set, Buckets::lengths): "
                       "there are 7 lengths for 9 samples. Give the length of every sample of the "
                       "set, in its order.",
                       frugal::DataError);
  CHECK_THROWS_AS(pass_of(9, {}, 0), frugal::SettingsError);
  CHECK_THROWS_AS(epoch_of(pass_of(9, {}), {.position = 10}), frugal::StateError);
}

}  // namespace frugal_test::data_buckets
