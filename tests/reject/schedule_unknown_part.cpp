// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Schedule<...>: unknown part. Parts: Warmup<N>, Constant<>, LinearDecay<...>, Cosine,
#include <frugal/policy/schedule.hpp>

using namespace frugal;

Schedule<Warmup<7>, Cosine> good;
#ifdef FRUGAL_REJECT
Schedule<Warmup<7>, Every<500>> bad;
#endif
