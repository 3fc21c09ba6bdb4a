// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <frugal/compose/policy.hpp>

namespace frugal::detail {

/// The order in which the policies of a recipe are called: positions in the recipe, first
/// called first. `placed < N` means that the rest wait for each other in a cycle.
template <std::size_t N>
struct Order {
  std::array<std::size_t, N> position{};
  std::size_t placed = 0;
};

constexpr bool names(std::span<Edge const> edges, std::string_view kind) {
  for (Edge const& edge : edges) {
    if (edge.kind == kind) return true;
  }
  return false;
}

/// Does `first` have to come before `second`, by the word of either?
constexpr bool precedes(Card const& first, Card const& second) {
  return names(first.before, second.kind) || names(second.after, first.kind);
}

constexpr bool comes_first(Card const& one, Card const& other) {
  return one.rank != other.rank ? one.rank < other.rank : one.kind < other.kind;
}

/// Kahn's topological sort (1962); of the policies that are free to come next, the one of the
/// lowest rank does, and of these the one whose kind's name is first in the alphabet, so that
/// permutations of a recipe have one order.
/// Policies of one (repeatable) kind keep the order in which they were written.
template <std::size_t N>
constexpr Order<N> order_of(std::array<Card, N> const& cards) {
  Order<N> order;
  std::array<bool, N> done{};
  for (std::size_t turn = 0; turn < N; ++turn) {
    std::size_t next = N;
    for (std::size_t i = 0; i < N; ++i) {
      if (done[i]) continue;
      bool free = true;
      for (std::size_t j = 0; j < N; ++j) {
        if (j != i && !done[j] && precedes(cards[j], cards[i])) free = false;
      }
      if (free && (next == N || comes_first(cards[i], cards[next]))) next = i;
    }
    if (next == N) break;
    done[next] = true;
    order.position[order.placed++] = next;
  }
  // A cycle: what could not be placed follows in the order it was written, for the message.
  std::size_t at = order.placed;
  for (std::size_t i = 0; i < N; ++i) {
    if (!done[i]) order.position[at++] = i;
  }
  return order;
}

}  // namespace frugal::detail
