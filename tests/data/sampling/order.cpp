// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/sampling/order.hpp>

#include <frugal/data/sampling/buckets.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/shared.hpp>
#include <frugal/data/shards/shard_order.hpp>

#include <doctest/doctest.h>

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
