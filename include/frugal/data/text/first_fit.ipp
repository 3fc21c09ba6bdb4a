// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/text/first_fit.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::size_t Rooms::take(std::uint32_t length) {
  std::size_t node = 1;
  while (node < leaves_) node = 2 * node + (rooms_[2 * node] >= length ? 0 : 1);
  rooms_[node] -= length;
  for (std::size_t up = node / 2; up > 0; up /= 2) {
    rooms_[up] = std::max(rooms_[2 * up], rooms_[2 * up + 1]);
  }
  return node - leaves_;
}

FRUGAL_INLINE void first_fit(std::vector<Fitted> const& pieces, std::uint32_t room,
                             std::vector<std::uint64_t>& entries,
                             std::vector<std::uint64_t>& starts) {
  Rooms rooms(pieces.size(), room);
  std::vector<std::uint64_t> sequence;
  sequence.reserve(pieces.size());
  std::uint64_t sequences = 0;
  for (Fitted const& piece : pieces) {
    sequence.push_back(rooms.take(piece.length));
    sequences = std::max(sequences, sequence.back() + 1);
  }
  starts.assign(sequences + 1, 0);
  for (std::uint64_t const s : sequence) ++starts[s + 1];
  for (std::size_t s = 1; s <= sequences; ++s) starts[s] += starts[s - 1];
  std::vector<std::uint64_t> next(starts.begin(), starts.end() - 1);
  entries.resize(pieces.size());
  for (std::size_t p = 0; p < pieces.size(); ++p) entries[next[sequence[p]]++] = pieces[p].what;
}

}  // namespace frugal::detail
