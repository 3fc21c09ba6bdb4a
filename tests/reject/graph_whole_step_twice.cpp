// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Graph<...>: the same option twice. Write Graph<WholeStep>.
#include <frugal/policy/graph.hpp>

using namespace frugal;

auto good = Graph<NoCapture, WholeStep>{};
#ifdef FRUGAL_REJECT
auto bad = Graph<WholeStep, WholeStep>{};
#endif
