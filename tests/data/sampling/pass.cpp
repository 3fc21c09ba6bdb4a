// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/sampling/pass.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace frugal_test::data_loading {

using frugal::Cursor;
using frugal::LoaderOptions;
using frugal::Pass;

std::vector<std::vector<std::int64_t>> rest(Pass& pass) {
  std::vector<std::vector<std::int64_t>> out;
  for (auto slice = pass.advance(); slice.count != 0; slice = pass.advance()) {
    out.emplace_back(slice.count);
    pass.indices(slice, std::span(out.back()));
  }
  return out;
}

std::vector<std::int64_t> flat(std::vector<std::vector<std::int64_t>> const& batches) {
  std::vector<std::int64_t> out;
  for (auto const& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

std::vector<std::int64_t> epoch_of(std::uint64_t samples, LoaderOptions loading, Cursor cursor) {
  Pass pass(samples, loading, "test");
  pass.seek(cursor);
  return flat(rest(pass));
}

TEST_CASE("a pass gives every sample once") {
  auto values = epoch_of(103, {.batch = 10}, {.seed = 4, .epoch = 9});
  REQUIRE(values.size() == 103);
  std::sort(values.begin(), values.end());
  for (std::int64_t i = 0; i < 103; ++i) CHECK(values[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("the order of a pass does not depend on the batch size") {
  auto const values = epoch_of(103, {.batch = 10}, {.seed = 4, .epoch = 9});
  for (std::int64_t const batch : {1, 7, 32, 33, 103, 1000}) {
    CHECK(epoch_of(103, {.batch = batch}, {.seed = 4, .epoch = 9}) == values);
  }
}

TEST_CASE("another seed and another epoch give other orders") {
  auto const values = epoch_of(103, {}, {.seed = 4, .epoch = 9});
  CHECK(values != epoch_of(103, {}, {.seed = 4, .epoch = 10}));
  CHECK(values != epoch_of(103, {}, {.seed = 5, .epoch = 9}));
}

TEST_CASE("the last batch is ragged, or left out by drop_last") {
  Pass ragged(10, {.batch = 4}, "test");
  CHECK(ragged.batches() == 3);
  auto const batches = rest(ragged);
  REQUIRE(batches.size() == 3);
  CHECK(batches[2].size() == 2);

  Pass dropped(10, {.batch = 4, .drop_last = true}, "test");
  CHECK(dropped.batches() == 2);
  CHECK(rest(dropped).size() == 2);
}

TEST_CASE("batches that divide the samples leave no ragged one") {
  Pass pass(8, {.batch = 4}, "test");
  CHECK(pass.batches() == 2);
  CHECK(rest(pass).size() == 2);
}

TEST_CASE("a pass starts at any position, on a batch boundary or not") {
  auto const values = epoch_of(50, {.batch = 8}, {.seed = 1});
  for (std::uint64_t position = 0; position <= 50; ++position) {
    auto const tail = epoch_of(50, {.batch = 8}, {.seed = 1, .position = position});
    CHECK(tail ==
          std::vector(values.begin() + static_cast<std::ptrdiff_t>(position), values.end()));
  }
}

TEST_CASE("a completed pass stays completed until the next seek") {
  Pass pass(5, {.batch = 5}, "test");
  CHECK(rest(pass).size() == 1);
  CHECK(pass.advance().count == 0);
  pass.seek({.epoch = 1});
  CHECK(rest(pass).size() == 1);
}

TEST_CASE("without shuffling the samples come in their own order in every epoch") {
  CHECK(epoch_of(5, {.batch = 2, .shuffle = false}, {.seed = 3, .epoch = 7}) ==
        std::vector<std::int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a cursor beyond the last sample is refused with both numbers") {
  Pass pass(5, {}, "test");
  CHECK_THROWS_WITH_AS(
      pass.seek({.epoch = 2, .position = 6}),
      "frugal: the cursor is past the last sample (test): it is at sample 6 of epoch 2, and there "
      "are 5. Resume with the data that the cursor was saved with.",
      frugal::StateError);
}

TEST_CASE("a batch below one sample is refused") {
  CHECK_THROWS_AS(Pass(5, {.batch = 0}, "test"), frugal::SettingsError);
  CHECK_THROWS_AS(Pass(5, {.batch = -3}, "test"), frugal::SettingsError);
}

TEST_CASE("a pass without samples, or whose only batch is dropped, is refused as empty") {
  CHECK_THROWS_AS(Pass(0, {}, "test"), frugal::EmptySourceError);
  CHECK_THROWS_AS(Pass(31, {.batch = 32, .drop_last = true}, "test"), frugal::EmptySourceError);
  CHECK_NOTHROW(Pass(32, {.batch = 32, .drop_last = true}, "test"));
}

}  // namespace frugal_test::data_loading
