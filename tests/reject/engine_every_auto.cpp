// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy cannot find its own cadence. Write Every<N>; Every<Auto> is for Checkpoint.
#include <frugal/core/run/counters.hpp>

constexpr frugal::Counters now{.step = 1};
static_assert(!frugal::Every<3>{}.due_at_step(now));
#ifdef FRUGAL_REJECT
static_assert(!frugal::Every<frugal::Auto>{}.due_at_step(now));
#endif
