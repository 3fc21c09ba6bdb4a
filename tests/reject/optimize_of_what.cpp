// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Optimize<...>: unknown optimizer. Options: AdamW, Adam, SGD, Adagrad, Any, Nothing. Include frugal/policy/optimize.hpp, which has them all.
#include <frugal/policy/optimize.hpp>

using namespace frugal;

auto good = Optimize<AdamW>{};
#ifdef FRUGAL_REJECT
struct Lion {};
Optimize<Lion> bad;
#endif
