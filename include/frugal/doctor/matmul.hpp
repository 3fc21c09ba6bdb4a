// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/doctor/machine.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <chrono>

namespace frugal::doctor {

namespace detail {

/// Seconds of the fastest of several products, so that other work on the machine counts little.
inline double fastest_product(at::Tensor const& a, at::Tensor const& b, double seconds) {
  auto const finish = [&a] {
    if (a.is_cuda()) torch::cuda::synchronize();
  };
  double fastest = 0;
  double spent = 0;
  for (int i = 0; i < 100 && (i < 3 || spent < seconds); ++i) {
    auto const begin = std::chrono::steady_clock::now();
    at::Tensor const product = at::mm(a, b);
    finish();
    double const took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    spent += took;
    // The first product also loads kernels.
    if (i > 0) fastest = fastest == 0 ? took : std::min(fastest, took);
  }
  return fastest;
}

}  // namespace detail

/// Measures a matrix product in FP32 and in BF16, each for about `seconds`, and at least three
/// times. Training multiplies in the same way; casts and other operators are not measured.
inline Matmul measure_matmul(at::Device device, double seconds = 0.3) {
  at::NoGradGuard const no_gradients;
  Matmul result{.device = device.is_cuda() ? "cuda" : "cpu", .size = device.is_cuda() ? 4096 : 768};
  double const flops = 2.0 * result.size * result.size * result.size;
  auto const options = at::TensorOptions().device(device);
  at::Tensor const ones = at::ones({result.size, result.size}, options);
  auto const rate = [&](at::Tensor const& matrix) {
    double const took = detail::fastest_product(matrix, matrix, seconds);
    return took > 0 ? flops / took : 0;
  };
  result.fp32 = rate(ones);
  result.bf16 = rate(ones.to(at::kBFloat16));
  return result;
}

}  // namespace frugal::doctor
