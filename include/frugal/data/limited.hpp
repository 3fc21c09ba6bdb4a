// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/wrapped_source.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace frugal {

/// The first batches of each epoch of a source: for a run that is tried out, a model that is to
/// learn one batch by heart, a validation on part of the data.
///
/// Lever   hours per run: a validation on a part of the data, or a trial, costs that part.
/// Cost    one batch is read when it is made; then a comparison per batch.
/// Order   the source's: shuffled, each epoch begins with other samples. Seeks as the source does.
/// Errors  those of the source; SettingsError for no batches.
///
/// The limit is a number of samples, those of `batches` batches as large as the first: so a run
/// resumes at any place of the epoch, also with another batch size, and needs to read nothing to
/// know how much of the epoch is left.
template <Source S>
class Limited : public detail::WrappedSource<S> {
  using detail::WrappedSource<S>::source_;

 public:
  using batch_type = batch_of<S>;
  using order_type = detail::given_order_of<S>;

  explicit Limited(S source, std::uint64_t batches)
      : detail::WrappedSource<S>(std::move(source)), most_(batches) {
    if (batches == 0) {
      throw SettingsError({.what = "a limit of 0 batches",
                           .where = "Limited",
                           .why = "an epoch would have none",
                           .fix = "Give 1 or more, or leave Limited out."});
    }
    // No source tells how many samples a batch stands for.
    if (source_.seek({}); auto const first = source_.next()) {
      advance(static_cast<std::uint64_t>(batch_samples(*first)));
    }
    bool const countable = position_ <= std::numeric_limits<std::uint64_t>::max() / batches;
    end_ = countable ? position_ * batches : std::numeric_limits<std::uint64_t>::max();
    seek({});
  }

  /// The end of the epoch may lie within a batch, where the source does not seek; nothing is read
  /// from there.
  void seek(Cursor const& cursor) {
    if (cursor.position < end_) source_.seek(cursor);
    position_ = cursor.position;
  }

  std::optional<batch_type> next() {
    if (position_ >= end_) return std::nullopt;
    std::optional<batch_type> batch = source_.next();
    if (batch) advance(static_cast<std::uint64_t>(batch_samples(*batch)));
    return batch;
  }

  /// Passes over the next batch; returns its samples, 0 at the end.
  std::uint64_t skip()
    requires SkippingSource<S>
  {
    if (position_ >= end_) return 0;
    auto const samples = static_cast<std::uint64_t>(source_.skip());
    advance(samples);
    return samples;
  }
  void divide(Division const& own)
    requires DividableSource<S>
  {
    source_.divide(own);
  }

  /// Samples of an epoch.
  std::uint64_t samples() const
    requires SizedSource<S>
  {
    return std::min(end_, static_cast<std::uint64_t>(source_.samples()));
  }
  std::uint64_t batches() const
    requires SizedSource<S>
  {
    return std::min(most_, static_cast<std::uint64_t>(source_.batches()));
  }
  /// The last batch may be larger than the rest of the limit.
  std::uint64_t consumed() const { return std::min(position_, end_); }

  void identify(DataIdentity& to) const {
    detail::identify(source_, to);
    std::uint64_t end = end_;
    if constexpr (SizedSource<S>) end = samples();
    to.add("limit", std::to_string(end) + " samples");
  }

 private:
  void advance(std::uint64_t samples) {
    if constexpr (ConsumingSource<S>) {
      position_ = static_cast<std::uint64_t>(source_.consumed());
    } else {
      position_ += samples;
    }
  }

  std::uint64_t most_;          // batches of an epoch
  std::uint64_t end_ = 0;       // samples of an epoch
  std::uint64_t position_ = 0;  // samples consumed in this one
};

}  // namespace frugal
