// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/groups.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace frugal_test::data_curate_groups {

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

}  // namespace frugal_test::data_curate_groups
