// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: EarlyStop<...>: unknown option. Options: Patience<validations>, GraceEpochs<epochs>, and a watched metric such as WatchLoss or WatchAccuracy. Of a metric of Validate, such as F1Score<Macro>, write its name: Watch<"f1_macro", Better::higher>.
#include <frugal/policy/early_stop.hpp>

using namespace frugal;

auto good = EarlyStop<WatchAccuracy, Patience<3>>{};
#ifdef FRUGAL_REJECT
auto bad = EarlyStop<Patience<3>, Every<500>>{};
#endif
