// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/source.hpp>

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

namespace detail {

template <class S>
struct order_type {
  using type = void;
};
template <class O>
struct whole_order {
  using type = O;
};
template <class O>
  requires requires { typename O::order_type; }
struct whole_order<O> : whole_order<typename O::order_type> {};
template <class S>
  requires requires { typename S::order_type; }
struct order_type<S> : whole_order<typename S::order_type> {};

/// The order that a source was given, which may be a part of another one; void without.
template <class S>
struct given_order {
  using type = void;
};
template <class S>
  requires requires { typename S::order_type; }
struct given_order<S> {
  using type = typename S::order_type;
};
template <class S>
using given_order_of = typename given_order<S>::type;

template <class O>
constexpr bool is_part_of_order() {
  if constexpr (requires { O::is_part; }) {
    return O::is_part;
  } else if constexpr (requires { typename O::order_type; }) {
    return is_part_of_order<typename O::order_type>();
  } else {
    return false;
  }
}
/// Whether a source reads one process's part of an epoch (Shared).
template <class S>
inline constexpr bool reads_a_part = is_part_of_order<given_order_of<S>>();

}  // namespace detail

/// The order of a source that says it (`using order_type`), as loaders and those around them do;
/// void of others. Of an order that has a part of another one, as Shared, it is that other one:
/// what a policy demands of an order holds for its parts.
template <class S>
using order_type_of = typename detail::order_type<S>::type;

}  // namespace frugal
