// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/text/first_fit.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace frugal_test::data_text_first_fit {

using frugal::detail::first_fit;
using frugal::detail::Fitted;

/// The same by a search through all sequences.
std::vector<std::vector<std::uint64_t>> by_search(std::vector<Fitted> const& pieces,
                                                  std::uint32_t room) {
  std::vector<std::vector<std::uint64_t>> out;
  std::vector<std::uint32_t> rooms;
  for (Fitted const& piece : pieces) {
    std::size_t at = 0;
    while (at < rooms.size() && rooms[at] < piece.length) ++at;
    if (at == rooms.size()) {
      rooms.push_back(room);
      out.emplace_back();
    }
    rooms[at] -= piece.length;
    out[at].push_back(piece.what);
  }
  return out;
}

TEST_CASE("each piece goes into the first sequence with room, as a search finds it") {
  std::mt19937 random(3);
  for (std::uint32_t const room : {1U, 2U, 7U, 100U}) {
    for (std::size_t const count : {0U, 1U, 2U, 3U, 64U, 65U, 500U}) {
      std::vector<Fitted> pieces;
      for (std::size_t i = 0; i < count; ++i) {
        pieces.push_back({.what = i, .length = 1 + static_cast<std::uint32_t>(random() % room)});
      }
      std::vector<std::uint64_t> entries, starts;
      first_fit(pieces, room, entries, starts);
      std::vector<std::vector<std::uint64_t>> found(starts.size() - 1);
      for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
        for (std::uint64_t at = starts[s]; at < starts[s + 1]; ++at)
          found[s].push_back(entries[at]);
      }
      CHECK(found == by_search(pieces, room));
      CHECK(entries.size() == count);
    }
  }
}

}  // namespace frugal_test::data_text_first_fit
