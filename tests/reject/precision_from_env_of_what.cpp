// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: FromEnv<...>: unknown format. Options: FP32, BF16, FP16, INT8, FP8.
#include <frugal/policy/precision.hpp>

using namespace frugal;

auto good = Precision<FromEnv<FP32, BF16>>{};
#ifdef FRUGAL_REJECT
auto bad = Precision<FromEnv<FP32, double>>{};
#endif
