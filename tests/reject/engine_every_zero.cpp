// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Every<0> would never be due. Write Every<1> or more.
#include <frugal/core/run/counters.hpp>

constexpr frugal::Counters now{};
static_assert(frugal::Every<1>{}.due_at_step(now));
#ifdef FRUGAL_REJECT
static_assert(frugal::Every<0>{}.count() == 0);
#endif
