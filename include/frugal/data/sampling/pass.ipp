// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/pass.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE Pass::Pass(std::uint64_t samples, LoaderOptions loading, std::string name)
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

FRUGAL_INLINE void Pass::seek(Cursor const& cursor) {
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

FRUGAL_INLINE Pass::Slice Pass::advance() {
  std::uint64_t const count = std::min(static_cast<std::uint64_t>(loading_.batch), left());
  if (loading_.drop_last && count < static_cast<std::uint64_t>(loading_.batch)) {
    return {position_, 0};
  }
  position_ += count;
  return {position_ - count, count};
}

FRUGAL_INLINE std::uint64_t Pass::batches() const {
  std::uint64_t const batch = static_cast<std::uint64_t>(loading_.batch);
  return loading_.drop_last ? samples_ / batch : (samples_ - 1) / batch + 1;
}

FRUGAL_INLINE void Pass::identify(DataIdentity& to, std::string const& order, bool shuffle) const {
  to.add("order", order);
  to.add("samples", samples_);
  to.add("shuffle", shuffle);
  to.add("drop_last", loading_.drop_last);
  // What is left out depends on it; the order of what is not does not.
  if (loading_.drop_last) to.add("batch", loading_.batch);
}

}  // namespace frugal
