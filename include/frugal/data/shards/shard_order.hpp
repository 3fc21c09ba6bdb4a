// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace frugal {

/// How many shards are read from at a time. A larger window shuffles better, and opens more files.
struct ShuffleWindow {
  std::uint64_t shards = 16;  ///< at least 1
  std::uint64_t samples = 0;  ///< not 0: as many shards as it takes to hold these, instead
};

/// A set whose samples lie in shards, one shard after the other.
template <class S>
concept ShardedSet = requires(S const& set) {
  { set.shard_sizes() } -> std::convertible_to<std::vector<std::uint64_t>>;
};

/// The sizes of blocks of `block` samples: shards for a set that is one file, but is read faster
/// where neighbours are read together.
std::vector<std::uint64_t> blocks_of(std::uint64_t samples, std::uint64_t block);

/// The way through an epoch that reads from a few shards at a time.
///
/// The shards come in a shuffled order, and are cut into windows of it. The samples of a window's
/// shards are shuffled together, all of them; then comes the next window. Each sample comes once
/// an epoch. All of it is a function of seed, epoch, the shards' sizes and the window: any place
/// can be sought, and neither the batch size, nor the world size, nor the workers change it.
///
/// Without shuffling the samples come in their own order.
///
/// Cost    a seek to another epoch: one permutation of the shards, a few nanoseconds for each.
///         Memory: 24 bytes a shard.
/// Errors  those of Pass; SettingsError for a window of 0 shards.
/// Source  the shuffled shards and the shuffle buffer of WebDataset and tf.data, with a keyed
///         permutation of a whole window in place of a buffer, whose state a resume would need.
class ShardOrder {
 public:
  using Slice = Pass::Slice;

  /// `sizes` are the samples of each shard, in the order in which the set has them; `name` is what
  /// errors call the set.
  ShardOrder(std::vector<std::uint64_t> const& sizes, LoaderOptions loading, ShuffleWindow window,
             std::string const& name)
      : loading_(loading), window_(window), begins_(sums(sizes)), pass_(make_pass(name)) {
    if (window.shards == 0) {
      throw SettingsError({.what = "a window of 0 shards",
                           .where = name + ", ShuffleWindow::shards",
                           .why = "",
                           .fix = "Set it to 1 or more."});
    }
    arrange();
  }
  template <ShardedSet S>
  ShardOrder(S const& set, LoaderOptions loading, ShuffleWindow window = {},
             std::string const& name = "ShardOrder")
      : ShardOrder(std::vector<std::uint64_t>(set.shard_sizes()), loading, window, name) {}

  void seek(Cursor const& cursor);

  Slice advance() { return pass_.advance(); }

  /// The samples at the places of a slice.
  template <class Int>
  void indices(Slice slice, std::span<Int> out) const {
    if (!loading_.shuffle || in_order_) return pass_.indices(slice, out);
    while (!out.empty()) {
      std::size_t const window = part(ends_, slice.first);
      std::uint64_t const begin = window == 0 ? 0 : ends_[window - 1].place;
      auto const count = static_cast<std::size_t>(
          std::min<std::uint64_t>(out.size(), ends_[window].place - slice.first));
      fill(window, slice.first - begin, out.first(count));
      out = out.subspan(count);
      slice.first += count;
    }
  }

  LoaderOptions const& loading() const { return loading_; }
  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }
  /// Windows of an epoch.
  std::size_t windows() const { return ends_.size(); }
  /// The most shards of a window of this epoch: they are read from at a time.
  std::size_t shards_at_once() const;

  void identify(DataIdentity& to) const;

 private:
  struct End {
    std::uint64_t place = 0;  // of the epoch, after the window's last
    std::size_t shard = 0;    // in the shuffled order, after the window's last
  };

  static std::vector<std::uint64_t> sums(std::vector<std::uint64_t> const& sizes);

  Pass make_pass(std::string const& name) const;

  /// Shuffles the shards of the epoch, and cuts them into windows.
  void arrange();

  std::uint64_t size_of(std::uint64_t shard) const { return begins_[shard + 1] - begins_[shard]; }
  std::uint64_t key(std::uint64_t which) const {
    return detail::mix64(cursor_.seed ^ detail::mix64(which + 0x5aed5));
  }

  /// The first window whose end is after `place`.
  static std::size_t part(std::vector<End> const& ends, std::uint64_t place);

  /// The samples at places first, first + 1, ... of a window.
  template <class Int>
  void fill(std::size_t window, std::uint64_t first, std::span<Int> out) const {
    std::uint64_t const begin = window == 0 ? 0 : ends_[window - 1].place;
    std::size_t const from = window == 0 ? 0 : ends_[window - 1].shard;
    Permutation const order(key(window + 1), cursor_.epoch, ends_[window].place - begin);
    order.fill(first, out);
    auto const shards_begin = places_.begin() + static_cast<std::ptrdiff_t>(from);
    auto const shards_end = places_.begin() + static_cast<std::ptrdiff_t>(ends_[window].shard);
    for (Int& each : out) {
      std::uint64_t const place = begin + static_cast<std::uint64_t>(each);
      auto const at = static_cast<std::size_t>(std::upper_bound(shards_begin, shards_end, place) -
                                               places_.begin());
      std::uint64_t const shard = shards_[at];
      std::uint64_t const before = places_[at] - size_of(shard);
      each = static_cast<Int>(begins_[shard] + (place - before));
    }
  }

  LoaderOptions loading_;
  ShuffleWindow window_;
  std::vector<std::uint64_t> begins_;  // samples before each shard of the set, and all
  Pass pass_;                          // checks cursors, and cuts batches
  Cursor cursor_{};
  bool in_order_ = false;
  std::vector<std::uint64_t> shards_;  // in the epoch's order
  std::vector<std::uint64_t> places_;  // after the last sample of each of these
  std::vector<End> ends_;              // of the windows
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/shard_order.ipp>
#endif
