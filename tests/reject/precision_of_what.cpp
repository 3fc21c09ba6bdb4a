// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Precision<...>: unknown format. Options: FP32, BF16, FP16, INT8, FP8, FromEnv<...>. frugal/policy/precision.hpp includes all.
#include <frugal/policy/precision.hpp>

using namespace frugal;

auto good = Precision<BF16>{};
#ifdef FRUGAL_REJECT
struct FP4 {};
Precision<FP4> bad;
#endif
