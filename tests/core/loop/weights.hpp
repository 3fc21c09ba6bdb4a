// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, F features.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "stand_ins.hpp"

// Losses with weights, for tests of windows.
namespace frugal_test::loop {

inline Loss loss_of(double weight, at::ScalarType type = at::kDouble) {
  return {.value = at::ones({}, type), .weight = weight};
}
inline Batch samples(std::int64_t count) { return {at::zeros({count, 2}), at::zeros({count, 3})}; }

/// The seed of a loss, after the gradients so far have made room for it.
template <class W>
double start(W& window, double weight, at::Tensor const& gradient = {}) {
  double const factor = window.shrink(weight);
  if (gradient.defined()) gradient.mul_(factor);
  return window.seed(loss_of(weight)).template item<double>();
}

}  // namespace frugal_test::loop
