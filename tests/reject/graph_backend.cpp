// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Graph<...>: unknown option. Options: WholeStep, and a type that is a frugal::CaptureBackend in place of CUDA's.
#include <frugal/policy/graph.hpp>

using namespace frugal;

auto good = Graph<WholeStep, NoCapture>{};
#ifdef FRUGAL_REJECT
auto bad = Graph<WholeStep, int>{};
#endif
