// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Every counts OptimizerStep, MicroBatch, Sample, Token or Epoch; Second and Auto are for Checkpoint.
#include <frugal/core/run/counters.hpp>

struct Fortnight {};
constexpr frugal::Counters now{};
static_assert(!frugal::Every<3, frugal::Token>{}.due_at_step(now));
#ifdef FRUGAL_REJECT
static_assert(!frugal::Every<3, Fortnight>{}.due_at_step(now));
#endif
