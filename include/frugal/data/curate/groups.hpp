// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace frugal {

/// Groups of samples that are joined pair by pair: union-find with path halving (Tarjan and van
/// Leeuwen, J. ACM 31(2), 1984). The least index stands for its group, whatever the order of joins.
///
/// Cost  memory for the samples that were joined, about 50 bytes each; none for those that are
/// alone.
class Groups {
 public:
  /// The least index of the group; the sample itself if it is alone.
  std::uint64_t find(std::uint64_t sample) {
    auto at = above_.find(sample);
    if (at == above_.end()) return sample;
    while (at->first != at->second) {
      auto const above = above_.find(at->second);
      at->second = above->second;
      at = above_.find(at->second);
    }
    return at->first;
  }

  /// Whether these were two groups, which are one now.
  bool join(std::uint64_t a, std::uint64_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return false;
    auto const [low, high] = std::minmax(a, b);
    above_[low] = low;
    above_[high] = low;
    return true;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> above_;
};

}  // namespace frugal
