// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <frugal/core/compose/policy.hpp>

namespace frugal::detail {

/// The order in which the policies of a recipe are called, as positions in the recipe. `sorted < N`
/// means that the rest form a cycle.
template <std::size_t N>
struct Order {
  std::array<std::size_t, N> position{};
  std::size_t sorted = 0;
};

/// The stage in which each policy comes: its own, or the earliest of the policies that it must
/// precede. So `before` moves a policy ahead, and not the other one back.
template <std::size_t N>
constexpr std::array<Stage, N> stages_of(std::array<PolicyInfo, N> const& infos) {
  std::array<Stage, N> stages{};
  for (std::size_t i = 0; i < N; ++i) stages[i] = infos[i].stage;
  // A chain of policies, each before the next one, has at most N links.
  for (std::size_t turn = 0; turn < N; ++turn) {
    for (std::size_t i = 0; i < N; ++i) {
      for (Edge const& edge : infos[i].before) {
        for (std::size_t j = 0; j < N; ++j) {
          if (infos[j].key == edge.key && stages[j] < stages[i]) stages[i] = stages[j];
        }
      }
    }
  }
  return stages;
}

/// Kahn's topological sort (1962). Of the policies that may come next, it takes the one of the
/// earliest stage, and among equals the alphabetically first kind name, so that all permutations of a
/// recipe have one order. Policies of one repeatable kind keep the order in which they were
/// written.
template <std::size_t N>
constexpr Order<N> order_of(std::array<PolicyInfo, N> const& infos) {
  Order<N> order;
  // Successors of each policy, and how many it waits for: each pair is examined once.
  bool follows[N + 1][N + 1] = {};
  std::size_t waits[N + 1] = {};
  for (std::size_t i = 0; i < N; ++i) {
    auto const all = [&](std::span<Edge const> edges, bool before) {
      for (Edge const& edge : edges) {
        for (std::size_t j = 0; j < N; ++j) {
          if (j == i || infos[j].key != edge.key) continue;
          std::size_t const first = before ? i : j;
          std::size_t const second = before ? j : i;
          if (!follows[first][second]) ++waits[second];
          follows[first][second] = true;
        }
      }
    };
    all(infos[i].before, true);
    all(infos[i].after, false);
  }
  std::array<Stage, N> const stages = stages_of(infos);
  auto const comes_first = [&](std::size_t one, std::size_t other) {
    return stages[one] != stages[other] ? stages[one] < stages[other]
                                        : infos[one].kind < infos[other].kind;
  };
  std::array<bool, N> done{};
  for (std::size_t turn = 0; turn < N; ++turn) {
    std::size_t next = N;
    for (std::size_t i = 0; i < N; ++i) {
      if (done[i] || waits[i] != 0) continue;
      if (next == N || comes_first(i, next)) next = i;
    }
    if (next == N) break;
    done[next] = true;
    order.position[order.sorted++] = next;
    for (std::size_t j = 0; j < N; ++j) waits[j] -= follows[next][j];
  }
  // A cycle: unsorted policies follow in the order in which they were written, for the message.
  std::size_t at = order.sorted;
  for (std::size_t i = 0; i < N; ++i) {
    if (!done[i]) order.position[at++] = i;
  }
  return order;
}

}  // namespace frugal::detail
