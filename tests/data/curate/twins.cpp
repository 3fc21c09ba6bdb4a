// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/twins.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace frugal_test::data_curate_twins {

using frugal::KeepSample;
using frugal::Removed;
using frugal::detail::Twins;

/// The groups by flooding: slow, and with nothing in common with union-find.
std::vector<std::uint64_t> flooded(
    std::size_t samples, std::vector<std::pair<std::uint64_t, std::uint64_t>> const& pairs) {
  std::vector<std::uint64_t> least(samples);
  for (std::size_t i = 0; i < samples; ++i) least[i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto const& [a, b] : pairs) {
      std::uint64_t const low = std::min(least[a], least[b]);
      changed = changed || least[a] != low || least[b] != low;
      least[a] = least[b] = low;
    }
  }
  return least;
}

TEST_CASE("a sample that was never joined is its own group") {
  frugal::Groups groups;
  CHECK(groups.find(7) == 7);
  CHECK(groups.join(7, 3));
  CHECK(groups.find(8) == 8);
}

TEST_CASE("groups are those of flooding, by their least index, in any order of joins") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    std::size_t const samples = 200;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
    for (int i = 0; i < 15 * round; ++i) pairs.emplace_back(random() % samples, random() % samples);
    auto const expected = flooded(samples, pairs);
    for (int order = 0; order < 3; ++order) {
      std::shuffle(pairs.begin(), pairs.end(), random);
      frugal::Groups groups;
      std::size_t joins = 0;
      for (auto const& [a, b] : pairs) joins += groups.join(a, b);
      std::size_t roots = 0;
      for (std::size_t i = 0; i < samples; ++i) {
        CHECK(groups.find(i) == expected[i]);
        roots += expected[i] == i;
      }
      CHECK(joins == samples - roots);
    }
  }
}

// 2 is like 5, 5 is like 9; 9 and 12 are copies. 20 and 30 are copies.
std::vector<frugal::detail::Alike> const chain = {
    {2, 5, 0.9, false}, {5, 9, 0.8, false}, {9, 12, 1, true}, {20, 30, 1, true}};

TEST_CASE("samples that have a twin are listed once, ascending") {
  Twins const twins(chain);
  CHECK(std::vector(twins.samples().begin(), twins.samples().end()) ==
        std::vector<std::uint64_t>{2, 5, 9, 12, 20, 30});
}

TEST_CASE("all of a group go but the first, each with the sample that joins it") {
  std::vector<std::uint64_t> const bytes = {1, 2, 3, 3, 7, 7};
  auto const removed = Twins(chain).removed(bytes, KeepSample::first);
  REQUIRE(removed.size() == 4);
  CHECK(removed[0] == Removed{5, 2, 0.9, false, 2, 0.9, 2});
  CHECK(removed[1].index == 9);
  CHECK(removed[1].twin == 2);
  CHECK(std::isnan(removed[1].similarity));  // nobody has compared these two
  CHECK(removed[1].through == 5);
  CHECK(removed[1].through_similarity == 0.8);
  CHECK(removed[2].index == 12);
  CHECK(!removed[2].copy);  // of 9, but not of 2
  CHECK(removed[2].through == 9);
  CHECK(removed[3] == Removed{30, 20, 1, true, 20, 1, 7});
}

TEST_CASE("the longest of a group stays, the first of equal ones") {
  std::vector<std::uint64_t> const bytes = {1, 2, 3, 3, 7, 8};
  auto const removed = Twins(chain).removed(bytes, KeepSample::longest);
  REQUIRE(removed.size() == 4);
  CHECK(removed[0].index == 2);
  CHECK(removed[0].through == 5);
  CHECK(removed[1] == Removed{5, 9, 0.8, false, 9, 0.8, 2});
  CHECK(removed[2] == Removed{12, 9, 1, true, 9, 1, 3});
  CHECK(removed[3].index == 20);
}

TEST_CASE("nothing alike, nothing removed") {
  CHECK(Twins({}).removed({}, KeepSample::first).empty());
}

}  // namespace frugal_test::data_curate_twins
