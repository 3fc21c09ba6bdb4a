// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Graph captures steps on one device, and Start begins the run on another. Take one of them out.
#include <frugal/compose/recipe.hpp>
#include <frugal/policy/graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/start.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears =
    frugal::detail::facts<typename Recipe<Optimize<AdamW>, Ps...>::policies>::say();

static_assert(hears<Start<Cpu>>);
static_assert(hears<Graph<WholeStep>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Start<Cpu>, Graph<WholeStep>>);
#endif
