// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/list.hpp>

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
FRUGAL_DECLARED(watches)

#undef FRUGAL_DECLARED

}  // namespace frugal::detail
