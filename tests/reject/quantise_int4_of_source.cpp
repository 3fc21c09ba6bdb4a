// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: quantise<Format>(module, source) calibrates inputs, which only INT8 quantises. Write quantise<INT4>(module).
#include <frugal/model/quantise.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

template <class Format>
void make() {
  torch::nn::Linear layer(2, 2);
  quantise<Format>(layer, std::vector<at::Tensor>());
}
template void make<INT8>();
#ifdef FRUGAL_REJECT
template void make<INT4>();
#endif
