// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Accumulate<Auto> splits a step when memory runs out, and a recorded step has one shape. Write Accumulate<N> beside a CUDA graph, or take the graph out.
#include <frugal/compose/recipe.hpp>
#include <frugal/policy/accumulate/split.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::facts<typename Recipe<Ps...>::policies>::say();

// A policy that executes a step in another way than launch by launch.
struct Recorded {
  using kind = kinds::execution;
  using listens = list<>;
};

static_assert(hears<Accumulate<4>, Recorded>);
static_assert(hears<Accumulate<Auto>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Accumulate<Auto>, Recorded>);
#endif
