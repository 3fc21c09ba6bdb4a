// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph<...>: unknown option. Options: WholeStep, and a type that is a frugal::CaptureBackend in place of CUDA's.
#include <frugal/policy/cuda_graph.hpp>

using namespace frugal;

auto good = CudaGraph<WholeStep, NoCapture>{};
#ifdef FRUGAL_REJECT
auto bad = CudaGraph<WholeStep, int>{};
#endif
