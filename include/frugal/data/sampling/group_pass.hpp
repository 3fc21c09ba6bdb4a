// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/source.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// An Order that visits groups of neighbouring samples one after the other, such as the row groups
/// of a file: the groups in a keyed order, and the samples within each in a keyed order. A reader
/// that decodes a group as a whole then decodes each once per epoch.
///
/// Samples of two groups do not mix, so the groups should hold many batches, and rows that differ.
/// A function of seed, epoch and the groups' sizes alone; seek() takes O(groups).
class GroupPass {
 public:
  /// `sizes` are those of the groups, in samples; `name` is what errors call the source.
  GroupPass(std::vector<std::uint64_t> sizes, Loading loading, std::string name)
      : loading_(loading),
        pass_(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}), in_order(loading),
              std::move(name)) {
    std::uint64_t first = 0;
    for (std::uint64_t const size : sizes) {
      groups_.push_back({first, size});
      first += size;
    }
    seek({});
  }

  void seek(Cursor const& cursor) {
    pass_.seek(cursor);
    cursor_ = cursor;
    order_.resize(groups_.size());
    ends_.resize(groups_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (loading_.shuffle) {
      Permutation const shuffled(cursor.seed, cursor.epoch, groups_.size());
      for (std::size_t k = 0; k < order_.size(); ++k) {
        order_[k] = static_cast<std::size_t>(shuffled(k));
      }
    }
    std::uint64_t end = 0;
    for (std::size_t k = 0; k < order_.size(); ++k) ends_[k] = end += groups_[order_[k]].size;
  }

  Pass::Slice advance() { return pass_.advance(); }

  /// The samples at the places of a slice; `out` has slice.count elements.
  template <class Int>
  void indices(Pass::Slice slice, std::span<Int> out) const {
    auto k = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), slice.first) -
                                      ends_.begin());
    for (std::uint64_t place = slice.first; !out.empty(); ++k) {
      Group const group = groups_[order_[k]];
      auto const count =
          static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), ends_[k] - place));
      std::uint64_t const in_group = place - (ends_[k] - group.size);
      if (loading_.shuffle && count > 0) {
        // Another key for each group, or groups of one size would be in one order.
        Permutation const shuffled(detail::mix64(cursor_.seed ^ detail::mix64(order_[k] + 1)),
                                   cursor_.epoch, group.size);
        shuffled.fill(in_group, out.first(count));
        for (Int& index : out.first(count)) index += static_cast<Int>(group.first);
      } else {
        std::iota(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count),
                  static_cast<Int>(group.first + in_group));
      }
      out = out.subspan(count);
      place += count;
    }
  }

  Loading const& loading() const { return loading_; }
  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }

 private:
  struct Group {
    std::uint64_t first;
    std::uint64_t size;
  };

  static Loading in_order(Loading loading) {
    loading.shuffle = false;
    return loading;
  }

  Loading loading_;
  Pass pass_;
  Cursor cursor_;
  std::vector<Group> groups_;
  std::vector<std::size_t> order_;   ///< of the groups in this epoch
  std::vector<std::uint64_t> ends_;  ///< the place behind each, in that order
};

}  // namespace frugal
