// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: RocAuc<...>: unknown average. Options: Binary, Macro. Write RocAuc<> or RocAuc<Macro>.
#include <frugal/metrics/roc_auc.hpp>

#include <string_view>

using namespace frugal;

static_assert(sizeof(RocAuc<Macro>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(RocAuc<Micro>) != 0);
#endif
