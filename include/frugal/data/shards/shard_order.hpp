// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/data_identity.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/source.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
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
FRUGAL_INLINE std::vector<std::uint64_t> blocks_of(std::uint64_t samples, std::uint64_t block) {
  std::vector<std::uint64_t> sizes(block == 0 ? 1 : samples / block, block);
  if (block == 0) sizes[0] = samples;
  if (block != 0 && samples % block != 0) sizes.push_back(samples % block);
  return sizes;
}

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

  FRUGAL_INLINE void seek(Cursor const& cursor) {
    pass_.seek(cursor);
    in_order_ = cursor.in_order;
    if (cursor.seed == cursor_.seed && cursor.epoch == cursor_.epoch) return;
    cursor_ = {.seed = cursor.seed, .epoch = cursor.epoch};
    arrange();
  }

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
  FRUGAL_INLINE std::size_t shards_at_once() const {
    std::size_t most = 1;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      most = std::max(most, ends_[i].shard - (i == 0 ? 0 : ends_[i - 1].shard));
    }
    return most;
  }

  FRUGAL_INLINE void identify(DataIdentity& to) const {
    pass_.identify(to, "ShardOrder", loading_.shuffle);
    if (!loading_.shuffle) return;
    to.add("window", window_.samples != 0 ? std::to_string(window_.samples) + " samples"
                                          : std::to_string(window_.shards) + " shards");
    // Where each shard begins, and the number of all samples.
    to.add("shards", std::span<std::uint64_t const>(begins_));
  }

 private:
  struct End {
    std::uint64_t place = 0;  // of the epoch, after the window's last
    std::size_t shard = 0;    // in the shuffled order, after the window's last
  };

  FRUGAL_INLINE static std::vector<std::uint64_t> sums(std::vector<std::uint64_t> const& sizes) {
    std::vector<std::uint64_t> out{0};
    out.reserve(sizes.size() + 1);
    for (std::uint64_t const size : sizes) out.push_back(out.back() + size);
    return out;
  }

  FRUGAL_INLINE Pass make_pass(std::string const& name) const {
    LoaderOptions loading = loading_;
    loading.shuffle = false;
    return Pass(begins_.back(), loading, name);
  }

  /// Shuffles the shards of the epoch, and cuts them into windows.
  FRUGAL_INLINE void arrange() {
    ends_.clear();
    places_.clear();
    shards_.clear();
    if (!loading_.shuffle) return;
    std::size_t const count = begins_.size() - 1;
    Permutation const order(key(0), cursor_.epoch, count);
    shards_.resize(count);
    order.fill(0, std::span(shards_));
    std::uint64_t place = 0;
    std::uint64_t const most =
        window_.samples != 0 ? std::numeric_limits<std::uint64_t>::max() : window_.shards;
    std::size_t in_window = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t const begin = ends_.empty() ? 0 : ends_.back().place;
      place += size_of(shards_[i]);
      places_.push_back(place);
      ++in_window;
      bool const full =
          in_window == most || (window_.samples != 0 && place - begin >= window_.samples);
      if (!full && i + 1 != count) continue;
      in_window = 0;
      // Empty shards alone make no window.
      if (place != begin) {
        ends_.push_back({place, i + 1});
      }
    }
    if (!ends_.empty()) ends_.back().shard = count;
  }

  std::uint64_t size_of(std::uint64_t shard) const { return begins_[shard + 1] - begins_[shard]; }
  std::uint64_t key(std::uint64_t which) const {
    return detail::mix64(cursor_.seed ^ detail::mix64(which + 0x5aed5));
  }

  /// The first window whose end is after `place`.
  FRUGAL_INLINE static std::size_t part(std::vector<End> const& ends, std::uint64_t place) {
    auto const at = std::partition_point(ends.begin(), ends.end(),
                                         [&](End const& end) { return end.place <= place; });
    return static_cast<std::size_t>(at - ends.begin());
  }

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
