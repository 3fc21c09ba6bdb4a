// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/page_locked.hpp>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace frugal_test::libtorch_page_locked {

using frugal::detail::Blocks;
using frugal::detail::blocks_for;

std::size_t sum(std::vector<std::size_t> const& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

/// Each tensor lies within its block, aligned for loads of any type, and overlaps no other.
void is_sound(std::vector<std::size_t> const& bytes, Blocks const& blocks) {
  REQUIRE(blocks.slots.size() == bytes.size());
  for (std::size_t const size : blocks.sizes) CHECK(std::has_single_bit(size));
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> taken(blocks.sizes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto const [block, offset] = blocks.slots[i];
    REQUIRE(block < blocks.sizes.size());
    CHECK(offset % 64 == 0);
    CHECK(offset + bytes[i] <= blocks.sizes[block]);
    taken[block].push_back({offset, offset + bytes[i]});
  }
  for (auto& spans : taken) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i - 1].second <= spans[i].first);
  }
}

TEST_CASE("tensors share blocks, and little is wasted") {
  std::mt19937 draw(3);
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    // Layers of a transformer: large matrices, and vectors between them.
    std::vector<std::size_t> bytes;
    std::size_t const width = 64 * (1 + draw() % 24);
    std::size_t const layers = 1 + draw() % 24;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      for (std::size_t const factor : {3U, 1U, 4U, 4U}) bytes.push_back(4 * width * width * factor);
      for (int i = 0; i < 8; ++i) bytes.push_back(4 * width);
    }
    Blocks const blocks = blocks_for(bytes);
    is_sound(bytes, blocks);
    std::size_t rounded = 0;
    for (std::size_t const each : bytes) rounded += std::bit_ceil(each);
    CHECK(sum(blocks.sizes) <= rounded + (std::size_t{1} << 20));
    CHECK(blocks.sizes.size() <= bytes.size() / 3);
    if (sum(bytes) > (std::size_t{32} << 20)) CHECK(sum(blocks.sizes) <= sum(bytes) * 5 / 4);
  }
}

TEST_CASE("one tensor, none, and an empty one have valid offsets") {
  is_sound({100}, blocks_for({100}));
  is_sound({0, 0, 7}, blocks_for({0, 0, 7}));
  CHECK(blocks_for({}).sizes.empty());
}

}  // namespace frugal_test::libtorch_page_locked
