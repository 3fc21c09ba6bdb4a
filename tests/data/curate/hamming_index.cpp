// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/hamming_index.hpp>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

namespace frugal_test::data_curate_hamming_index {

/// Hashes in clusters, so that there are neighbours at every distance.
std::vector<std::uint64_t> clusters(std::size_t count) {
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> out;
  std::uint64_t centre = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 20 == 0) centre = random();
    std::uint64_t hash = centre;
    for (std::size_t flips = i % 20; flips > 0; --flips)
      hash ^= std::uint64_t{1} << (random() % 64);
    out.push_back(hash);
  }
  return out;
}

TEST_CASE("a lookup finds what a look at every hash finds, at any distance") {
  auto const hashes = clusters(600);
  frugal::HammingIndex const index(hashes);
  CHECK(index.size() == 600);
  for (unsigned distance = 0; distance <= 11; ++distance) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < hashes.size(); i += 7) {
      std::vector<std::uint32_t> expected;
      for (std::uint32_t j = 0; j < hashes.size(); ++j) {
        if (static_cast<unsigned>(std::popcount(hashes[i] ^ hashes[j])) <= distance)
          expected.push_back(j);
      }
      CHECK(index.within(hashes[i], distance) == expected);
      found += expected.size();
    }
    CHECK(found >= 86);  // each at least finds itself
  }
}

TEST_CASE("the worst spread of differences over the parts is found too") {
  // Two bits in each part: a distance of 8, and 2 in every part.
  std::uint64_t const spread = 0x0003'0003'0003'0003U;
  frugal::HammingIndex const index({spread});
  CHECK(index.within(0, 8) == std::vector<std::uint32_t>{0});
  CHECK(index.within(0, 7).empty());
}

TEST_CASE("an empty index finds nothing") { CHECK(frugal::HammingIndex({}).within(5, 3).empty()); }

}  // namespace frugal_test::data_curate_hamming_index
