// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>

#include <concepts>
#include <cstdint>
#include <span>

namespace frugal {

/// The way through the samples of an epoch: which of them each batch takes. `Pass`, shuffled or
/// not, and `BucketPass`; a loader takes any.
///
/// `seek(cursor)`           the next batch begins at place `cursor.position` of epoch
/// `cursor.epoch`; `advance()`              the places of the next batch; count 0 at the end of the
/// epoch; `indices(slice, out)`    the samples at the places of a slice that advance() gave;
/// `samples()`, `batches()` in an epoch;
/// `loading()`              the batch size and the like.
///
/// All of it is a function of the cursor and of the settings: that is what makes a run resume
/// exactly.
template <class O>
concept Order = requires(O& order, O const& same, Cursor const& cursor, Pass::Slice slice,
                         std::span<std::uint64_t> out) {
  order.seek(cursor);
  { order.advance() } -> std::same_as<Pass::Slice>;
  order.indices(slice, out);
  { same.samples() } -> std::convertible_to<std::uint64_t>;
  { same.batches() } -> std::convertible_to<std::uint64_t>;
  { same.loading() } -> std::convertible_to<LoaderOptions const&>;
};

}  // namespace frugal
