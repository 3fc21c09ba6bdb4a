// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <frugal/data/source.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The position in the epoch after some batches of a source: that which the source reports, or
/// else the number of their samples. Empty for a source that does not report it.
template <class S>
class Consumed {
 public:
  explicit Consumed(S const&) {}
  static std::uint64_t after(std::uint64_t position, std::uint64_t samples) {
    return position + samples;
  }
};
template <ConsumingSource S>
class Consumed<S> {
 public:
  explicit Consumed(S const& source) : source_(&source) {}
  std::uint64_t after(std::uint64_t, std::uint64_t) const {
    return static_cast<std::uint64_t>(source_->consumed());
  }

 private:
  S const* source_;
};

/// StateError for a cursor behind the last sample of a source that knows its size. The source's own
/// seek() may check more: whether a batch begins there.
template <class S>
void require_in_epoch(S const& source, Cursor const& cursor) {
  if constexpr (SizedSource<S>) {
    if (cursor.position == 0) return;
    auto const samples = static_cast<std::uint64_t>(source.samples());
    if (cursor.position <= samples) return;
    throw StateError({.what = "the cursor is past the last sample",
                      .where = "training data",
                      .why = "it is at sample " + std::to_string(cursor.position) + " of epoch " +
                             std::to_string(cursor.epoch) + ", and there are " +
                             std::to_string(samples),
                      .fix = "Resume with the data that the cursor was saved with."});
  }
}

}  // namespace frugal::detail
