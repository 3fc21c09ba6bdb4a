// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: TopK<0> has no class to look at. Write TopK<5>.
#include <frugal/metrics/top_k.hpp>

#include <string_view>

using namespace frugal;

static_assert(sizeof(TopK<1>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(TopK<0>) != 0);
#endif
