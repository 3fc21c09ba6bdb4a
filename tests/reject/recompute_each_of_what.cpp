// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: each takes a ModuleList, or a range of module holders or shared pointers.
#include <frugal/policy/recompute.hpp>

#include <torch/nn/modules/linear.h>

at::Tensor good(std::vector<torch::nn::Linear>& layers, at::Tensor const& x) {
  return frugal::each(layers, x, [](auto& layer, at::Tensor const& h) { return layer(h); });
}
#ifdef FRUGAL_REJECT
at::Tensor bad(std::vector<double>& factors, at::Tensor const& x) {
  return frugal::each(factors, x, [](double factor, at::Tensor const& h) { return h * factor; });
}
#endif
