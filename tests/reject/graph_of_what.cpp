// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Graph is told what it captures, and that is the whole step. Write Graph<WholeStep>.
#include <frugal/policy/graph.hpp>

using namespace frugal;

auto good = Graph<WholeStep>{};
#ifdef FRUGAL_REJECT
auto bad = Graph<int>{};
#endif
