// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a callback's name has a slash, which separates names in a checkpoint. Write it without one.
#include <frugal/policy/callback.hpp>

using namespace frugal;

auto good = on_step<"train.count">([](Step&) {});
#ifdef FRUGAL_REJECT
auto bad = on_step<"train/count">([](Step&) {});
#endif
