// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>

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

namespace frugal::detail {

/// From how many of `groups` groups of rows an order reads at a time.
template <class O>
std::uint64_t groups_at_once(O const& order, std::uint64_t groups) {
  if (!order.loading().shuffle || groups == 0) return 1;
  if constexpr (requires { order.shards_at_once(); }) {
    return static_cast<std::uint64_t>(order.shards_at_once());
  } else {
    return groups;
  }
}

/// What to change about an order that makes a set of tables decode its groups again and again, also
/// a set within a Transformed; empty for other sets. See GroupCache::advice.
template <class Set>
std::string group_warning(Set const& set, std::uint64_t at_once) {
  if constexpr (requires { set.group_warning(at_once); }) {
    return set.group_warning(at_once);
  } else if constexpr (requires { set.set(); }) {
    return group_warning(set.set(), at_once);
  } else {
    return {};
  }
}

/// From how many groups of such a set an order reads at a time; 1 for other sets.
template <class Set, class O>
std::uint64_t groups_at_once_of(Set const& set, O const& order) {
  if constexpr (requires { set.group_warning(std::uint64_t{1}); }) {
    return groups_at_once(order, set.groups());
  } else if constexpr (requires { set.set(); }) {
    return groups_at_once_of(set.set(), order);
  } else {
    return 1;
  }
}

}  // namespace frugal::detail
