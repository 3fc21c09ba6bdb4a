// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a source says of its order, by types of its own: data/sampling/order.hpp has the orders.

namespace frugal {

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
