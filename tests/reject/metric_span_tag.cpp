// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: SpanF1<...>: a tag is O, or B, I, E or S with a type.
#include <frugal/metrics/span_f1.hpp>

using namespace frugal;

static_assert(sizeof(SpanF1<"O", "B-PER">) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(SpanF1<"O", "PER">) != 0);
#endif
