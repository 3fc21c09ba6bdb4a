// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: PrecisionScore, RecallScore, F1Score: unknown average. Options: Binary, Micro, Macro, Weighted. Write F1Score<Macro>.
#include <frugal/metrics/precision_recall.hpp>

#include <string_view>

using namespace frugal;

struct Median {
  static constexpr fixed_string suffix = "_median";
};
static_assert(sizeof(F1Score<Macro>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(F1Score<Median>) != 0);
#endif
