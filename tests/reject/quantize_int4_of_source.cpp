// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: quantize<Format>(module, source) calibrates inputs, which only INT8 quantizes. Write quantize<INT4>(module).
#include <frugal/model/quantize.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

template <class Format>
void make() {
  torch::nn::Linear layer(2, 2);
  quantize<Format>(layer, std::vector<at::Tensor>());
}
template void make<INT8>();
#ifdef FRUGAL_REJECT
template void make<INT4>();
#endif
