// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/data_identity.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/source.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace frugal {

/// How samples become batches.
struct LoaderOptions {
  std::int64_t batch = 32;  ///< samples per batch, at least 1
  bool shuffle = true;      ///< a new order every epoch, a function of seed and epoch alone
  bool drop_last = false;   ///< leave out the ragged batch at the end of an epoch
};

/// The way through one epoch of `samples` samples: which of them the next batch takes.
///
/// The order of an epoch does not depend on the batch size, so that the batch size may change
/// over a resume. Knows nothing of tensors; every source that picks samples by index has one.
///
/// Errors  SettingsError for a batch below 1; EmptySourceError where no batch can be made;
///         StateError for a cursor after the last sample.
class Pass {
 public:
  /// `name` is what errors call the source.
  FRUGAL_INLINE Pass(std::uint64_t samples, LoaderOptions loading, std::string name)
      : loading_(loading), samples_(samples), name_(std::move(name)) {
    if (loading.batch < 1) {
      throw SettingsError({.what = "a batch of " + std::to_string(loading.batch) + " samples",
                           .where = name_,
                           .why = "",
                           .fix = "Set LoaderOptions::batch to 1 or more."});
    }
    if (samples == 0) {
      throw EmptySourceError({.what = "the source holds no samples",
                              .where = name_,
                              .why = "",
                              .fix = "Give it at least one."});
    }
    if (batches() == 0) {
      throw EmptySourceError(
          {.what = "an epoch has no batch",
           .where = name_,
           .why = "drop_last leaves out the only batch: " + std::to_string(samples) +
                  " samples make no batch of " + std::to_string(loading.batch),
           .fix = "Make the batch smaller or leave drop_last off."});
    }
    seek({});
  }

  FRUGAL_INLINE void seek(Cursor const& cursor) {
    if (cursor.position > samples_) {
      throw StateError({.what = "the cursor is past the last sample",
                        .where = name_,
                        .why = "it is at sample " + std::to_string(cursor.position) + " of epoch " +
                               std::to_string(cursor.epoch) + ", and there are " +
                               std::to_string(samples_),
                        .fix = "Resume with the data that the cursor was saved with."});
    }
    shuffles_ = loading_.shuffle && !cursor.in_order;
    if (shuffles_) order_ = Permutation(cursor.seed, cursor.epoch, samples_);
    position_ = cursor.position;
  }

  /// The places [first, first + count) that the next batch takes; count 0: the epoch has ended.
  struct Slice {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  FRUGAL_INLINE Slice advance() {
    std::uint64_t const count = std::min(static_cast<std::uint64_t>(loading_.batch), left());
    if (loading_.drop_last && count < static_cast<std::uint64_t>(loading_.batch)) {
      return {position_, 0};
    }
    position_ += count;
    return {position_ - count, count};
  }

  /// The samples at the places of a slice; `out` has slice.count elements.
  template <class Int>
  void indices(Slice slice, std::span<Int> out) const {
    if (shuffles_) {
      order_.fill(slice.first, out);
    } else {
      for (Int& index : out) index = static_cast<Int>(slice.first++);
    }
  }

  LoaderOptions const& loading() const { return loading_; }
  /// Whether the order that was sought is shuffled.
  bool shuffles() const { return shuffles_; }
  std::uint64_t samples() const { return samples_; }

  /// Batches of an epoch that is read from its start.
  FRUGAL_INLINE std::uint64_t batches() const {
    std::uint64_t const batch = static_cast<std::uint64_t>(loading_.batch);
    return loading_.drop_last ? samples_ / batch : (samples_ - 1) / batch + 1;
  }

  void identify(DataIdentity& to) const { identify(to, "Pass", loading_.shuffle); }
  /// For an order of another name that cuts its batches with this one.
  FRUGAL_INLINE void identify(DataIdentity& to, std::string const& order, bool shuffle) const {
    to.add("order", order);
    to.add("samples", samples_);
    to.add("shuffle", shuffle);
    to.add("drop_last", loading_.drop_last);
    // What is left out depends on it; the order of what is not does not.
    if (loading_.drop_last) to.add("batch", loading_.batch);
  }

 private:
  std::uint64_t left() const { return samples_ - position_; }

  LoaderOptions loading_;
  std::uint64_t samples_;
  std::uint64_t position_ = 0;
  bool shuffles_ = false;
  Permutation order_;
  std::string name_;
};

}  // namespace frugal
