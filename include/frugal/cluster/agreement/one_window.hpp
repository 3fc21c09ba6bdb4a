// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/communicator/control_frame.hpp>

namespace frugal::detail {

/// Throws ClusterError, in every process, unless the messages are of one window. `all` have exchanged
/// `parts`, one of each in their order; `consumed`: of this process (SharedWindow).
inline void require_one_window(Communicator& all, std::vector<WindowMessage::Part> const& parts,
                               std::uint64_t consumed) {
  bool const same = std::ranges::all_of(
      parts, [&](WindowMessage::Part const& each) { return each.stamp == parts.front().stamp; });
  if (same) [[likely]]
    return;
  // A message has only a hash of the place. ClusterError if they are at different windows.
  at::Tensor const own = at::full({1}, static_cast<std::int64_t>(consumed), at::kLong);
  at::Tensor const read = all.gather(own, "the losses of a step");
  auto const named = [&](int rank) { return "rank " + std::to_string(all.rank_in_world(rank)); };
  std::string difference = "the number of windows differs, at " + all.place().text();
  auto const first = read[0].item<std::int64_t>();
  int rank = 1;
  while (rank + 1 < all.size() && read[rank].item<std::int64_t>() == first) ++rank;
  if (auto const there = read[rank].item<std::int64_t>(); there != first) {
    difference = "in the window at " + all.place().text() + ", " + named(rank) +
                 " has read up to sample " + std::to_string(there) + " of the epoch, and " +
                 named(0) + " up to " + std::to_string(first);
  }
  refuse_other_place(std::move(difference), all.hosts()[static_cast<std::size_t>(rank)]);
}

}  // namespace frugal::detail
