// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/sampling/order.hpp>

#include <doctest/doctest.h>

#include <frugal/data/sampling/buckets.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/shards/shard_order.hpp>

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

static_assert(frugal::Order<frugal::Pass> && frugal::Order<frugal::BucketPass>);
static_assert(!frugal::Order<int>);

namespace {

/// What any user of the concept does: the samples of an epoch, batch by batch.
template <frugal::Order O>
std::vector<std::uint64_t> read(O order, frugal::Cursor const& cursor) {
  order.seek(cursor);
  std::vector<std::uint64_t> all, batch;
  for (auto slice = order.advance(); slice.count != 0; slice = order.advance()) {
    batch.resize(slice.count);
    order.indices(slice, std::span(batch));
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

}  // namespace

TEST_CASE("an order gives every sample once, and a seek the rest of the same order") {
  frugal::Pass const pass(10, {.batch = 3}, "ten");
  auto const all = read(pass, {.seed = 5, .epoch = 2});
  CHECK(std::set(all.begin(), all.end()).size() == 10);
  auto const rest = read(pass, {.seed = 5, .epoch = 2, .position = 4});
  CHECK(rest == std::vector(all.begin() + 4, all.end()));
}

using frugal::Pass;
using frugal::ShardOrder;
using frugal::detail::groups_at_once;

namespace frugal_test::sampling_group_window {

struct Table {
  std::uint64_t groups() const { return 20; }
  std::string group_warning(std::uint64_t at_once) const { return std::to_string(at_once); }
};

/// As Transformed has its set.
struct Around {
  Table const& set() const { return table; }
  Table table;
};

struct Other {};

TEST_CASE("an order reads from one group at a time, from those of its window, or from all") {
  std::vector<std::uint64_t> const sizes(20, 10);
  ShardOrder const window(sizes, {.batch = 10}, {.shards = 16}, "x");
  CHECK(groups_at_once(window, 20) == 16);
  CHECK(groups_at_once(frugal::Shared(window, {.rank = 0, .world = 2}), 20) == 16);
  CHECK(groups_at_once(ShardOrder(sizes, {.batch = 10, .shuffle = false}, {}, "x"), 20) == 1);
  CHECK(groups_at_once(ShardOrder(sizes, {.batch = 10}, {.samples = 25}, "x"), 20) == 3);
  CHECK(groups_at_once(Pass(200, {.batch = 10}, "x"), 20) == 20);
  CHECK(groups_at_once(Pass(200, {.batch = 10, .shuffle = false}, "x"), 20) == 1);
}

TEST_CASE("a set of tables is found within a transformed one, and other sets have no advice") {
  Pass const pass(200, {.batch = 10}, "x");
  CHECK(frugal::detail::groups_at_once_of(Around{}, pass) == 20);
  CHECK(frugal::detail::group_warning(Around{}, 3) == "3");
  CHECK(frugal::detail::groups_at_once_of(Other{}, pass) == 1);
  CHECK(frugal::detail::group_warning(Other{}, 3).empty());
}

}  // namespace frugal_test::sampling_group_window

namespace frugal_test::data_shared {

using frugal::BucketPass;
using frugal::Cursor;
using frugal::LoaderOptions;
using frugal::Pass;
using frugal::Shared;

static_assert(frugal::Order<Shared<Pass>> && frugal::Order<Shared<BucketPass>>);

using Batches = std::vector<std::vector<std::uint64_t>>;

template <class O>
Batches batches_of(O& order, Cursor const& cursor) {
  order.seek(cursor);
  Batches all;
  for (auto slice = order.advance(); slice.count != 0; slice = order.advance()) {
    all.emplace_back(slice.count);
    order.indices(slice, std::span(all.back()));
  }
  return all;
}

/// The parts of all ranks, joined batch by batch; empty if their numbers of batches differ.
template <class Make>
Batches joined(int world, Cursor const& cursor, Make&& make) {
  Batches all;
  for (int rank = 0; rank < world; ++rank) {
    Shared order(make(), {.rank = rank, .world = world});
    Batches const mine = batches_of(order, cursor);
    if (rank == 0) all.resize(mine.size());
    if (mine.size() != all.size()) return {};
    for (std::size_t i = 0; i < mine.size(); ++i) {
      all[i].insert(all[i].end(), mine[i].begin(), mine[i].end());
    }
  }
  return all;
}

TEST_CASE("the parts of the ranks are the batches of the order, joined in the order of the ranks") {
  for (bool const shuffle : {false, true}) {
    auto const make = [&] { return Pass(48, {.batch = 8, .shuffle = shuffle}, "set"); };
    Pass alone = make();
    Batches const expected = batches_of(alone, {.seed = 3, .epoch = 2});
    for (int const world : {1, 2, 3, 4, 8}) {
      CHECK(joined(world, {.seed = 3, .epoch = 2}, make) == expected);
    }
  }
}

TEST_CASE("parts of one batch differ by one sample at most, and none is empty") {
  for (std::uint64_t samples = 4; samples < 70; ++samples) {
    std::size_t batches = 0;
    std::size_t sizes = 0;
    for (int rank = 0; rank < 4; ++rank) {
      Shared order(Pass(samples, {.batch = 9}, "set"), {.rank = rank, .world = 4});
      Batches const mine = batches_of(order, {.seed = 1});
      CHECK(mine.size() == order.batches());
      if (rank == 0) batches = mine.size();
      CHECK(mine.size() == batches);
      for (auto const& part : mine) {
        CHECK(part.size() >= 1);
        CHECK(part.size() <= 3);  // a joined batch has 9 + 3 samples at most
        sizes += part.size();
      }
    }
    CHECK(sizes == samples);
  }
}

TEST_CASE("a last batch of fewer samples than ranks is joined to the one before") {
  auto const make = [] { return Pass(18, {.batch = 8, .shuffle = false}, "set"); };
  CHECK(joined(2, {}, make).size() == 3);
  Batches const of_three = joined(3, {}, make);
  REQUIRE(of_three.size() == 2);
  CHECK(of_three[1] == std::vector<std::uint64_t>{8, 9, 10, 11, 12, 13, 14, 15, 16, 17});
}

TEST_CASE("with drop_last the ragged global batch is left out, whatever the world size") {
  for (int const world : {1, 2, 3, 4}) {
    Batches const all =
        joined(world, {}, [] { return Pass(18, {.batch = 8, .drop_last = true}, "set"); });
    REQUIRE(all.size() == 2);
    CHECK(all[0].size() == 8);
    CHECK(all[1].size() == 8);
  }
}

TEST_CASE("the position counts global samples, and every rank says the same") {
  for (int rank = 0; rank < 3; ++rank) {
    Shared order(Pass(50, {.batch = 8}, "set"), {.rank = rank, .world = 3});
    order.seek({.position = 5});
    CHECK(order.consumed() == 5);
    order.advance();
    CHECK(order.consumed() == 13);
    while (order.advance().count != 0) {
    }
    CHECK(order.consumed() == 50);
  }
}

TEST_CASE("a joined batch of an order by length has each sample once") {
  auto const make = [] {
    frugal::Buckets buckets{.lengths = {}, .pool = 2};
    for (std::int64_t i = 0; i < 33; ++i) buckets.lengths.push_back(i % 5);
    return BucketPass(33, {.batch = 8}, buckets, "set");
  };
  for (std::uint64_t const position : {0U, 7U, 15U, 29U}) {
    std::set<std::uint64_t> seen;
    std::size_t count = 0;
    for (auto const& batch : joined(4, {.seed = 2, .position = position}, make)) {
      count += batch.size();
      seen.insert(batch.begin(), batch.end());
    }
    CHECK(count == 33 - position);
    CHECK(seen.size() == 33 - position);
  }
}

TEST_CASE("where fewer samples than ranks are left after a resume, the epoch ends for all ranks") {
  auto const make = [] { return Pass(18, {.batch = 8}, "set"); };
  CHECK(joined(2, {.position = 16}, make).size() == 1);
  for (int rank = 0; rank < 3; ++rank) {
    Shared order(make(), {.rank = rank, .world = 3});
    CHECK(batches_of(order, {.position = 16}).empty());
  }
}

TEST_CASE("a rank outside of the world, and one without samples, are refused") {
  auto const pass = [](std::uint64_t samples, std::int64_t batch) {
    return Pass(samples, {.batch = batch}, "set");
  };
  CHECK_THROWS_AS(Shared(pass(9, 4), {.rank = 2, .world = 2}), frugal::SettingsError);
  CHECK_THROWS_AS(Shared(pass(9, 4), {.rank = -1, .world = 2}), frugal::SettingsError);
  CHECK_THROWS_AS(Shared(pass(9, 4), {.rank = 0, .world = 0}), frugal::SettingsError);
  CHECK_THROWS_AS(Shared(pass(9, 4), {.rank = 0, .world = 5}), frugal::SettingsError);
  CHECK_THROWS_AS(Shared(pass(3, 8), {.rank = 0, .world = 4}), frugal::EmptySourceError);
}

}  // namespace frugal_test::data_shared
