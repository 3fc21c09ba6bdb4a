// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/buckets.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <numeric>
#include <utility>

namespace frugal {

FRUGAL_INLINE BucketPass::BucketPass(std::uint64_t samples, LoaderOptions loading, Buckets buckets,
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

FRUGAL_INLINE void BucketPass::seek(Cursor const& cursor) {
  pass_.seek(cursor);
  cursor_ = cursor;
  pool_ = none;
}

FRUGAL_INLINE BucketPass::Slice BucketPass::advance() {
  std::uint64_t const within = cursor_.position % batch();
  std::uint64_t const left = samples() - cursor_.position;
  if (loading().drop_last && within + left < batch()) return {cursor_.position, 0};
  std::uint64_t const count = std::min(batch() - within, left);
  cursor_.position += count;
  return {cursor_.position - count, count};
}

FRUGAL_INLINE void BucketPass::identify(DataIdentity& to) const {
  pass_.identify(to, "BucketPass", loading().shuffle);
  if (!loading().drop_last) to.add("batch", loading().batch);
  to.add("pool", buckets_.pool);
  to.add("lengths", std::span<std::int64_t const>(buckets_.lengths));
}

FRUGAL_INLINE void BucketPass::fill(std::uint64_t which) {
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

}  // namespace frugal
