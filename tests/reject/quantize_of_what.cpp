// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: quantize<...>: unknown format. Options: INT8, INT4.
#include <frugal/model/quantize.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class Format>
void make() {
  torch::nn::Linear layer(2, 2);
  quantize<Format>(layer);
}
template void make<INT8>();
#ifdef FRUGAL_REJECT
template void make<FP32>();
#endif
