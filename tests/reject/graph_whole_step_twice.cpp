// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph<...>: the same option twice. Write CudaGraph<WholeStep>.
#include <frugal/policy/cuda_graph.hpp>

using namespace frugal;

auto good = CudaGraph<NoCapture, WholeStep>{};
#ifdef FRUGAL_REJECT
auto bad = CudaGraph<WholeStep, WholeStep>{};
#endif
