// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Graph's second argument captures and replays. Leave it out for CUDA, or give a type that is a frugal::CaptureBackend.
#include <frugal/policy/graph.hpp>

using namespace frugal;

auto good = Graph<WholeStep, NoCapture>{};
#ifdef FRUGAL_REJECT
auto bad = Graph<WholeStep, int>{};
#endif
