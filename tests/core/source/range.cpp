// SPDX-License-Identifier: Apache-2.0
#include "data/sources.hpp"

#include <doctest/doctest.h>

#include <frugal/core/source/range.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <forward_list>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal_test::data_range {

using namespace frugal_test::data_sources;
using frugal::as_source;
using frugal::Batch;

/// Batches of 3, 4 and 2 samples, numbered consecutively.
std::vector<Batch> ragged() {
  Batch const set = numbered(9);
  std::vector<Batch> out;
  for (auto const& [first, last] : {std::pair{0, 3}, {3, 7}, {7, 9}}) {
    out.push_back({set.data.slice(0, first, last), set.target.slice(0, first, last)});
  }
  return out;
}

TEST_CASE("as_source refers to an lvalue source and moves any other") {
  frugal::TensorDataset resident(numbered(9));
  static_assert(std::is_same_v<decltype(as_source(resident)), frugal::TensorDataset&>);
  static_assert(std::is_same_v<decltype(as_source(std::move(resident))), frugal::TensorDataset>);
  CHECK(&as_source(resident) == &resident);
}

TEST_CASE("a vector of batches is a source that refers to it, or owns a temporary") {
  std::vector<Batch> batches = ragged();
  auto source = as_source(batches);
  static_assert(frugal::SizedSource<decltype(source)>);
  CHECK(source.samples() == 9);
  CHECK(source.batches() == 3);
  CHECK(same(rest(source), batches));
  CHECK(rest(source).empty());
  auto owner = as_source(ragged());
  CHECK(same(rest(owner), batches));
  std::vector<Batch> const fixed = ragged();
  auto reader = as_source(fixed);
  CHECK(same(rest(reader), batches));
}

TEST_CASE("a range of batches comes in its own order in every epoch, whatever the seed") {
  auto source = as_source(ragged());
  CHECK(samples_in(epoch_of(source, {.seed = 5, .epoch = 4})) ==
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("a range of batches resumes where a batch begins") {
  auto source = as_source(ragged());
  CHECK(samples_in(epoch_of(source, {.position = 3})) ==
        std::vector<std::int64_t>{3, 4, 5, 6, 7, 8});
  CHECK(samples_in(epoch_of(source, {.position = 7})) == std::vector<std::int64_t>{7, 8});
  CHECK(epoch_of(source, {.position = 9}).empty());
}

TEST_CASE("a cursor inside a batch, or beyond the last one, is refused with its position") {
  auto source = as_source(ragged());
  CHECK_THROWS_WITH_AS(source.seek({.epoch = 1, .position = 5}),
                       "frugal: no batch begins at the cursor (sample 5 of epoch 1): the batches "
                       "before it end at sample 7. Resume with the batches that the cursor was "
                       "saved with.",
                       frugal::StateError);
  CHECK_THROWS_AS(source.seek({.position = 10}), frugal::StateError);
}

TEST_CASE("a range source that is copied or moved in the middle continues from its position") {
  std::vector<Batch> const batches = ragged();
  auto source = as_source(batches);
  source.next();
  auto copy = source;
  CHECK(samples_in(rest(copy)) == std::vector<std::int64_t>{3, 4, 5, 6, 7, 8});
  auto moved = std::move(source);
  CHECK(samples_in(rest(moved)) == std::vector<std::int64_t>{3, 4, 5, 6, 7, 8});
  auto owner = as_source(ragged());
  owner.next();
  auto moved_owner = std::move(owner);
  CHECK(samples_in(rest(moved_owner)) == std::vector<std::int64_t>{3, 4, 5, 6, 7, 8});
}

TEST_CASE("batches may come from a list, from a view that makes them, and be bare tensors") {
  auto const batches = ragged();
  std::forward_list<Batch> list(batches.begin(), batches.end());
  auto from_list = as_source(list);
  CHECK(same(rest(from_list), batches));
  auto made =
      as_source(std::views::iota(1, 4) | std::views::transform([](int n) { return numbered(n); }));
  CHECK(made.samples() == 6);
  CHECK(same(epoch_of(made, {.position = 3}), {numbered(3)}));
  auto tensors = as_source(std::vector<at::Tensor>{at::zeros({2}), at::ones({3})});
  CHECK(tensors.samples() == 5);
  CHECK(rest(tensors).size() == 2);
}

TEST_CASE("a range without batches is refused as empty") {
  std::vector<Batch> const none;
  CHECK_THROWS_AS(as_source(none), frugal::EmptySourceError);
}

}  // namespace frugal_test::data_range
