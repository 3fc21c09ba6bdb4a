// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/list.hpp>

namespace frugal::property {

/// What a policy may declare about itself: `using properties = list<property::capturable>;`. What it does
/// not declare is not assumed.
///
/// `adapt(module)` changes the module for good.
struct adapts {};
/// Its `around_validate` adds no metric to a validation.
struct adds_no_metrics {};
/// It works within a captured step, although it listens there.
struct capturable {};
/// It starts the run in several processes.
struct has_ranks {};
/// It comes out the same in all processes that train together.
struct knows_ranks {};
/// It is right with a part of the module (Pipeline).
struct knows_stages {};
/// An optimizer that computes a window's loss more than once.
struct reevaluates {};
/// It skips windows with bad gradients itself, as Precision<FP16> does.
struct skips_overflows {};
/// It treats elements one by one, or takes norms by `phase.norms()`, so that it works with Shard.
struct works_on_parts {};

using all = list<adapts, adds_no_metrics, capturable, has_ranks, knows_ranks, knows_stages,
                 reevaluates, skips_overflows, works_on_parts>;

}  // namespace frugal::property

// The lists that a policy may declare, as types: `needs_of<P>::type` is P::needs, or list<> if P
// does not declare it.
namespace frugal::detail {

// C++ has no template parameter for a member's name.
#define FRUGAL_DECLARED(member)               \
  template <class P>                          \
  struct member##_of {                        \
    using type = list<>;                      \
  };                                          \
  template <class P>                          \
    requires requires { typename P::member; } \
  struct member##_of<P> {                     \
    using type = typename P::member;          \
  };

FRUGAL_DECLARED(needs)
FRUGAL_DECLARED(conflicts)
FRUGAL_DECLARED(before)
FRUGAL_DECLARED(after)
FRUGAL_DECLARED(demands)
FRUGAL_DECLARED(source_demands)
FRUGAL_DECLARED(provides)
FRUGAL_DECLARED(metrics)
FRUGAL_DECLARED(properties)
FRUGAL_DECLARED(watches)

#undef FRUGAL_DECLARED

template <class Property, class P>
inline constexpr bool has_property = contains<Property, typename properties_of<P>::type>;

template <class List>
inline constexpr bool are_properties = false;
template <class... Ps>
inline constexpr bool are_properties<list<Ps...>> = (... && contains<Ps, property::all>);

}  // namespace frugal::detail
