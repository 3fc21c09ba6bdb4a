// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Where<> selects nothing. Write a pattern: Where<"encoder.*">, or Where<"*"> for everything.
#include <frugal/model/where.hpp>

using namespace frugal;

static_assert(Where<"*">::matches("head.weight"));
#ifdef FRUGAL_REJECT
static_assert(!Where<>::matches("head.weight"));
#endif
