// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/data_identity.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/source.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Puts samples of like length into one batch, so that there is little to pad.
struct Buckets {
  std::vector<std::int64_t> lengths{};  ///< of every sample of the set
  std::int64_t pool = 64;  ///< batches that are drawn together and then sorted, at least 1
};

/// The way through one epoch, as Pass has it, with samples of like length side by side.
///
/// An epoch is the shuffled order of Pass, cut into pools of `pool` batches. The samples of a pool
/// are sorted by length and cut into batches, and these come in a shuffled order; a ragged batch
/// comes last. Without shuffling the pools are those of the set's own order, and the batches of a
/// pool come from short to long. All of it is a function of seed, epoch, batch and pool: any
/// position can be sought. With another batch or pool the order is another one: Checkpoint refuses
/// to resume with it.
///
/// Cost    a pool is sorted when its first batch is read: about 10 comparisons a sample. Memory for
///         the lengths, 8 bytes a sample of the set, and for one pool.
/// Errors  those of Pass; DataError unless there is one length for each sample; SettingsError for
///         a pool below 1.
/// Source  Khomenko et al., "Accelerating recurrent neural network training using sequence
///         bucketing and multi-GPU data parallelization" (2016); pools as
///         torchtext's BucketIterator has them.
class BucketPass {
 public:
  using Slice = Pass::Slice;

  FRUGAL_INLINE BucketPass(std::uint64_t samples, LoaderOptions loading, Buckets buckets,
                           std::string const& name)
      : pass_(samples, loading, name), buckets_(std::move(buckets)) {
    if (buckets_.lengths.size() != samples) {
      throw DataError({.what = "there is not one length for each sample",
                       .where = name + ", Buckets::lengths",
                       .why = "there are " + std::to_string(buckets_.lengths.size()) +
                              " lengths for " + std::to_string(samples) + " samples",
                       .fix = "Give the length of every sample of the set, in its order."});
    }
    if (buckets_.pool < 1) {
      throw SettingsError({.what = "a pool of " + std::to_string(buckets_.pool) + " batches",
                           .where = name + ", Buckets::pool",
                           .why = "",
                           .fix = "Set it to 1 or more."});
    }
  }

  FRUGAL_INLINE void seek(Cursor const& cursor) {
    pass_.seek(cursor);
    cursor_ = cursor;
    pool_ = none;
  }

  /// At most what is left of the batch that the position is in.
  FRUGAL_INLINE Slice advance() {
    std::uint64_t const within = cursor_.position % batch();
    std::uint64_t const left = samples() - cursor_.position;
    if (loading().drop_last && within + left < batch()) return {cursor_.position, 0};
    std::uint64_t const count = std::min(batch() - within, left);
    cursor_.position += count;
    return {cursor_.position - count, count};
  }

  /// The samples at the places of a slice, which lies in one batch.
  template <class Int>
  void indices(Slice slice, std::span<Int> out) {
    if (cursor_.in_order) return pass_.indices(slice, out);
    if (slice.first / pool_size() != pool_) fill(slice.first / pool_size());
    std::uint64_t const at = slice.first - pool_ * pool_size();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Int>(order_[at + i]);
  }

  LoaderOptions const& loading() const { return pass_.loading(); }
  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }

  /// With the batch size, on which this order depends.
  FRUGAL_INLINE void identify(DataIdentity& to) const {
    pass_.identify(to, "BucketPass", loading().shuffle);
    if (!loading().drop_last) to.add("batch", loading().batch);
    to.add("pool", buckets_.pool);
    to.add("lengths", std::span<std::int64_t const>(buckets_.lengths));
  }

 private:
  static constexpr auto none = static_cast<std::uint64_t>(-1);

  std::uint64_t batch() const { return static_cast<std::uint64_t>(loading().batch); }
  /// Not more than the set: a pool may be said to be as large as one likes.
  std::uint64_t pool_size() const {
    return batch() * std::min(static_cast<std::uint64_t>(buckets_.pool), samples() / batch() + 1);
  }

  FRUGAL_INLINE void fill(std::uint64_t which) {
    pool_ = which;
    std::uint64_t const first = which * pool_size();
    std::uint64_t const count = std::min(pool_size(), samples() - first);
    sorted_.resize(count);
    pass_.indices({first, count}, std::span(sorted_));
    // Equal lengths stay in the shuffled order. std::stable_sort would warn: libstdc++'s calls a
    // deprecated function.
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    std::sort(order_.begin(), order_.end(), [this](std::uint64_t a, std::uint64_t b) {
      auto const one = buckets_.lengths[sorted_[a]];
      auto const other = buckets_.lengths[sorted_[b]];
      return one < other || (one == other && a < b);
    });
    for (std::uint64_t& place : order_) place = sorted_[place];
    sorted_.swap(order_);
    if (!loading().shuffle) {
      order_ = sorted_;
      return;
    }
    std::uint64_t const whole = count / batch();
    Permutation const batches(detail::mix64(cursor_.seed ^ detail::mix64(which + 1)), cursor_.epoch,
                              whole);
    order_.clear();
    for (std::uint64_t i = 0; i < whole; ++i) {
      auto const from = sorted_.begin() + static_cast<std::ptrdiff_t>(batches(i) * batch());
      order_.insert(order_.end(), from, from + static_cast<std::ptrdiff_t>(batch()));
    }
    order_.insert(order_.end(), sorted_.begin() + static_cast<std::ptrdiff_t>(whole * batch()),
                  sorted_.end());
  }

  Pass pass_;
  Buckets buckets_;
  Cursor cursor_{};
  std::uint64_t pool_ = none;          // whose samples are in order_
  std::vector<std::uint64_t> order_;   // of the pool
  std::vector<std::uint64_t> sorted_;  // by length
};

}  // namespace frugal
