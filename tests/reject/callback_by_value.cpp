// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a callback cannot be called with what the loop gives it. Take the phase by reference: fr::on_step([](fr::Step& step) { ... }), Validated for on_validated, EpochEnd for on_epoch_end, Saved for on_checkpoint.
#include <frugal/policy/callback.hpp>

using namespace frugal;

auto good = on_validated([](Validated&) {});
#ifdef FRUGAL_REJECT
auto bad = on_validated([](Step&) {});
#endif
