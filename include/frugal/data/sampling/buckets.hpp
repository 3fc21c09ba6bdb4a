// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/permutation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

  BucketPass(std::uint64_t samples, LoaderOptions loading, Buckets buckets,
             std::string const& name);

  void seek(Cursor const& cursor);

  /// At most what is left of the batch that the position is in.
  Slice advance();

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
  void identify(DataIdentity& to) const;

 private:
  static constexpr auto none = static_cast<std::uint64_t>(-1);

  std::uint64_t batch() const { return static_cast<std::uint64_t>(loading().batch); }
  /// Not more than the set: a pool may be said to be as large as one likes.
  std::uint64_t pool_size() const {
    return batch() * std::min(static_cast<std::uint64_t>(buckets_.pool), samples() / batch() + 1);
  }

  void fill(std::uint64_t which);

  Pass pass_;
  Buckets buckets_;
  Cursor cursor_{};
  std::uint64_t pool_ = none;          // whose samples are in order_
  std::vector<std::uint64_t> order_;   // of the pool
  std::vector<std::uint64_t> sorted_;  // by length
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/sampling/buckets.ipp>
#endif
