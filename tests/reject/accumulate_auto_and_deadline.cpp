// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Accumulate<Auto> repeats a step when memory runs out, which no deadline of a step can allow for. Write Accumulate<N>, or remove the deadline.
#include <frugal/compose/recipe.hpp>
#include <frugal/policy/accumulate/split.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::facts<typename Recipe<Ps...>::policies>::require();

// A policy with a deadline for a step.
struct InTime {
  using kind = kinds::deadline;
  using listens = list<on::step>;
};

static_assert(hears<Accumulate<4>, InTime>);
#ifdef FRUGAL_REJECT
static_assert(hears<Accumulate<Auto>, InTime>);
#endif
