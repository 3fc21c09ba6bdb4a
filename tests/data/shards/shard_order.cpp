// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/shard_order.hpp>

#include <frugal/data/sampling/order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <vector>

namespace frugal_test::data_shards_shard_order {

using frugal::Cursor;
using frugal::LoaderOptions;
using frugal::ShardOrder;
using frugal::ShuffleWindow;
using Samples = std::vector<std::uint64_t>;

static_assert(frugal::Order<ShardOrder>);

/// What a loader does: the samples of an epoch from the cursor on, batch by batch.
Samples read(ShardOrder order, Cursor const& cursor) {
  order.seek(cursor);
  Samples all, batch;
  for (auto slice = order.advance(); slice.count != 0; slice = order.advance()) {
    batch.resize(slice.count);
    order.indices(slice, std::span(batch));
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

Samples const sizes{5, 0, 17, 1, 30, 8, 8, 0, 21, 3};  // 93

ShardOrder order(LoaderOptions loading = {.batch = 8}, ShuffleWindow window = {.shards = 3}) {
  return {sizes, loading, window, "test"};
}

std::size_t shard_of(std::uint64_t sample, Samples const& of = sizes) {
  std::size_t shard = 0;
  for (; sample >= of[shard]; ++shard) sample -= of[shard];
  return shard;
}

Samples counted(std::uint64_t n) {
  Samples out(n);
  std::iota(out.begin(), out.end(), std::uint64_t{0});
  return out;
}

TEST_CASE("every sample comes once an epoch, for any window") {
  for (ShuffleWindow const window :
       {ShuffleWindow{.shards = 1}, ShuffleWindow{.shards = 3}, ShuffleWindow{.shards = 100},
        ShuffleWindow{.samples = 1}, ShuffleWindow{.samples = 40}}) {
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      auto all = read(order({.batch = 8}, window), {.seed = 3, .epoch = epoch});
      std::sort(all.begin(), all.end());
      CHECK(all == counted(93));
    }
  }
}

TEST_CASE("one order that is sought again gives what a new one gives") {
  ShardOrder again = order();
  for (Cursor const cursor : {Cursor{.seed = 3},
                              {.seed = 3, .epoch = 1},
                              {.seed = 4, .epoch = 1},
                              {.seed = 3, .epoch = 1, .position = 40},
                              {.seed = 3}}) {
    again.seek(cursor);
    CHECK(read(again, cursor) == read(order(), cursor));
  }
}

TEST_CASE("a seek gives the rest of the same epoch, from every place and for every batch size") {
  Cursor cursor{.seed = 7, .epoch = 2};
  auto const all = read(order(), cursor);
  for (std::int64_t const batch : {1, 5, 8, 64, 1000}) {
    for (cursor.position = 0; cursor.position <= 93; ++cursor.position) {
      CHECK(read(order({.batch = batch}), cursor) ==
            Samples(all.begin() + static_cast<std::ptrdiff_t>(cursor.position), all.end()));
    }
  }
}

TEST_CASE("ranks that read parts of each batch read every sample once, whatever the world size") {
  Cursor const cursor{.seed = 7, .epoch = 2};
  auto const all = read(order(), cursor);
  for (std::uint64_t world = 1; world <= 4; ++world) {
    Samples together(93);
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      ShardOrder mine = order();  // of its own process
      mine.seek(cursor);
      for (auto slice = mine.advance(); slice.count != 0; slice = mine.advance()) {
        for (std::uint64_t i = rank; i < slice.count; i += world) {
          std::uint64_t one = 0;
          mine.indices({slice.first + i, 1}, std::span(&one, 1));
          together[slice.first + i] = one;
        }
      }
    }
    CHECK(together == all);
  }
}

TEST_CASE("seeds and epochs have orders of their own, and windows within one, too") {
  auto const one = read(order(), {.seed = 1, .epoch = 1});
  CHECK(one == read(order(), {.seed = 1, .epoch = 1}));
  CHECK(one != read(order(), {.seed = 1, .epoch = 2}));
  CHECK(one != read(order(), {.seed = 2, .epoch = 1}));
  CHECK(one != counted(93));
  // Two windows of like size must not be shuffled alike.
  Samples const alike(2, 50);
  auto const halves = read(ShardOrder(alike, {.batch = 50}, {.shards = 1}, "test"), {.seed = 1});
  Samples first, second;
  for (std::size_t i = 0; i < 50; ++i) {
    first.push_back(halves[i] % 50);
    second.push_back(halves[50 + i] % 50);
  }
  CHECK(first != second);
}

TEST_CASE("a window's samples come from its shards alone") {
  Samples const equal(40, 25);
  auto const all = read(ShardOrder(equal, {.batch = 10}, {.shards = 4}, "test"), {.seed = 5});
  std::set<std::size_t> seen;
  for (std::size_t window = 0; window < 10; ++window) {
    std::set<std::size_t> shards;
    for (std::size_t i = 0; i < 100; ++i) shards.insert(shard_of(all[100 * window + i], equal));
    CHECK(shards.size() == 4);
    seen.insert(shards.begin(), shards.end());
  }
  CHECK(seen.size() == 40);
}

/// Distinct shards among each 1,000 samples that follow one another, on average.
double shards_touched(Samples const& all, Samples const& of) {
  std::size_t touched = 0;
  for (std::size_t at = 0; at + 1000 <= all.size(); at += 1000) {
    std::set<std::size_t> shards;
    for (std::size_t i = at; i < at + 1000; ++i) shards.insert(shard_of(all[i], of));
    touched += shards.size();
  }
  return static_cast<double>(touched) / static_cast<double>(all.size() / 1000);
}

TEST_CASE("1,000 samples touch 16 shards of 100, and not all of them") {
  Samples const equal(100, 200);
  auto const near = read(ShardOrder(equal, {.batch = 50}, {}, "test"), {.seed = 5});
  CHECK(shards_touched(near, equal) < 20);
  frugal::Pass far(20'000, {.batch = 50}, "test");
  far.seek({.seed = 5});
  Samples all(20'000);
  far.indices({0, 20'000}, std::span(all));
  CHECK(shards_touched(all, equal) > 99);
}

TEST_CASE("a window of samples takes as many shards as hold them") {
  Samples const equal(40, 25);
  CHECK(ShardOrder(equal, {}, {.samples = 100}, "test").windows() == 10);
  CHECK(ShardOrder(equal, {}, {.samples = 101}, "test").windows() == 8);
  CHECK(ShardOrder(equal, {}, {.shards = 3}, "test").windows() == 14);
}

TEST_CASE("a set that is one file is cut into blocks") {
  CHECK(frugal::blocks_of(10, 4) == Samples{4, 4, 2});
  CHECK(frugal::blocks_of(8, 4) == Samples{4, 4});
  CHECK(frugal::blocks_of(10, 0) == Samples{10});
  CHECK(frugal::blocks_of(3, 4) == Samples{3});
}

TEST_CASE("without shuffling the samples come in their own order") {
  CHECK(read(order({.batch = 8, .shuffle = false}), {.seed = 9, .epoch = 1}) == counted(93));
}

TEST_CASE("drop_last leaves out the ragged batch") {
  CHECK(read(order({.batch = 8, .drop_last = true}), {}).size() == 88);
  CHECK(order({.batch = 8, .drop_last = true}).batches() == 11);
}

TEST_CASE("no samples, a window of nothing and a cursor past the end are refused") {
  CHECK_THROWS_AS(ShardOrder(Samples{}, {}, {}, "test"), frugal::EmptySourceError);
  CHECK_THROWS_AS(ShardOrder(Samples{0, 0}, {}, {}, "test"), frugal::EmptySourceError);
  CHECK_THROWS_AS(order({}, {.shards = 0}), frugal::SettingsError);
  ShardOrder one = order();
  CHECK_THROWS_AS(one.seek({.position = 94}), frugal::StateError);
}

}  // namespace frugal_test::data_shards_shard_order
