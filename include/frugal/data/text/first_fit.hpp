// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// An item with a length, placed in a sequence.
struct Fitted {
  std::uint64_t what = 0;
  std::uint32_t length = 0;  ///< at least 1
};

/// The room that is left in each sequence, and in which the first with enough is found: a tree of
/// maxima, O(log sequences) a question. A sequence that is not begun has all of its room.
class Rooms {
 public:
  Rooms(std::size_t most, std::uint32_t room)
      : leaves_(std::bit_ceil(std::max<std::size_t>(most, 1))), rooms_(2 * leaves_, room) {}

  /// The first sequence with room for `length`, which takes it.
  FRUGAL_INLINE std::size_t take(std::uint32_t length) {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (rooms_[2 * node] >= length ? 0 : 1);
    rooms_[node] -= length;
    for (std::size_t up = node / 2; up > 0; up /= 2) {
      rooms_[up] = std::max(rooms_[2 * up], rooms_[2 * up + 1]);
    }
    return node - leaves_;
  }

 private:
  std::size_t leaves_;
  std::vector<std::uint32_t> rooms_;
};

/// First fit: each piece, in order, into the first sequence with room for it. `entries` are the
/// pieces sequence by sequence, in that order; those of sequence i begin at starts[i]. No piece is
/// longer than `room`.
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
