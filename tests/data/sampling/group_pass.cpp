// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/sampling/group_pass.hpp>
#include <frugal/data/sampling/order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

using frugal::Cursor;
using frugal::GroupPass;

namespace {

static_assert(frugal::Order<GroupPass>);

std::vector<std::uint64_t> rest(GroupPass& pass, Cursor const& cursor) {
  std::vector<std::uint64_t> all;
  pass.seek(cursor);
  while (true) {
    auto const slice = pass.advance();
    if (slice.count == 0) return all;
    std::vector<std::uint64_t> some(slice.count);
    pass.indices(slice, std::span(some));
    all.insert(all.end(), some.begin(), some.end());
  }
}

std::vector<std::uint64_t> const sizes{5, 0, 3, 9, 1, 9};

std::size_t group_of(std::uint64_t index) {
  std::size_t group = 0;
  for (; index >= sizes[group]; ++group) index -= sizes[group];
  return group;
}

}  // namespace

TEST_CASE("every sample comes once, and a group's samples follow each other") {
  for (std::int64_t const batch : {1, 4, 27, 100}) {
    GroupPass pass(sizes, {.batch = batch}, "rows");
    CHECK(pass.samples() == 27);
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
      auto const order = rest(pass, {.seed = 3, .epoch = epoch});
      CHECK(std::set<std::uint64_t>(order.begin(), order.end()).size() == 27);
      CHECK(order.size() == 27);
      int changes = 0;
      for (std::size_t i = 1; i < order.size(); ++i) {
        if (group_of(order[i]) != group_of(order[i - 1])) ++changes;
      }
      CHECK(changes == 4);  // five groups have samples
    }
  }
}

TEST_CASE("the order is of seed and epoch alone, and may be entered anywhere") {
  GroupPass pass(sizes, {.batch = 4}, "rows");
  GroupPass other(sizes, {.batch = 7}, "rows");
  Cursor const begin{.seed = 3, .epoch = 2};
  auto const order = rest(pass, begin);
  CHECK(rest(other, begin) == order);
  CHECK(rest(pass, {.seed = 3, .epoch = 3}) != order);
  CHECK(rest(pass, {.seed = 4, .epoch = 2}) != order);
  for (std::uint64_t position = 0; position <= 27; ++position) {
    auto const tail = rest(pass, {.seed = 3, .epoch = 2, .position = position});
    CHECK(std::equal(tail.begin(), tail.end(),
                     order.begin() + static_cast<std::ptrdiff_t>(position), order.end()));
  }
}

TEST_CASE("groups of one size are in unlike orders, and in another place in another epoch") {
  std::vector<std::uint64_t> const equal(8, 50);
  GroupPass pass(equal, {.batch = 50}, "rows");
  std::set<std::vector<std::uint64_t>> orders;
  std::set<std::uint64_t> first;
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    auto const order = rest(pass, {.seed = 1, .epoch = epoch});
    first.insert(order[0] / 50);
    for (std::ptrdiff_t g = 0; g < 8; ++g) {
      std::vector<std::uint64_t> group(order.begin() + 50 * g, order.begin() + 50 * (g + 1));
      for (std::uint64_t& index : group) index %= 50;
      CHECK_FALSE(std::is_sorted(group.begin(), group.end()));
      orders.insert(group);
    }
  }
  CHECK(orders.size() == 48);
  CHECK(first.size() > 2);
}

TEST_CASE("without shuffling it is the order of the set") {
  GroupPass pass(sizes, {.batch = 4, .shuffle = false, .drop_last = true}, "rows");
  std::vector<std::uint64_t> straight(24);
  std::iota(straight.begin(), straight.end(), std::uint64_t{0});
  CHECK(rest(pass, {}) == straight);
  CHECK(pass.batches() == 6);
}

TEST_CASE("no samples, and a cursor behind the last, are errors") {
  CHECK_THROWS_AS(GroupPass({}, {}, "rows"), frugal::EmptySourceError);
  CHECK_THROWS_AS(GroupPass({0, 0}, {}, "rows"), frugal::EmptySourceError);
  GroupPass pass(sizes, {}, "rows");
  CHECK_THROWS_AS(pass.seek({.position = 28}), frugal::StateError);
}
