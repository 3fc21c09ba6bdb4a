// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/source/batch.hpp>

#include <ATen/ATen.h>

#include <cstdint>

// A typed pointer is a template of LibTorch's with a constraint: its symbol depends on the
// compiler.
double second() {
  at::Tensor const count = at::full({1}, 6, at::kLong);
  return at::ones({3, 2}).sum().item<double>() *
         static_cast<double>(*count.const_data_ptr<std::int64_t>()) / 6;
}
