// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: TopK<K>: K is the number of classes to consider, at least 1. Write TopK<5>.
#include <frugal/metrics/top_k.hpp>

#include <string_view>

using namespace frugal;

static_assert(sizeof(TopK<1>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(TopK<0>) != 0);
#endif
