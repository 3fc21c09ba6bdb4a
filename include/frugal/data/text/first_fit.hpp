// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

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
  std::size_t take(std::uint32_t length);

 private:
  std::size_t leaves_;
  std::vector<std::uint32_t> rooms_;
};

/// First fit: each piece, in order, into the first sequence with room for it. `entries` are the
/// pieces sequence by sequence, in that order; those of sequence i begin at starts[i]. No piece is
/// longer than `room`.
void first_fit(std::vector<Fitted> const& pieces, std::uint32_t room,
               std::vector<std::uint64_t>& entries, std::vector<std::uint64_t>& starts);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/text/first_fit.ipp>
#endif
