// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/doctor/machine.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace frugal::doctor {

namespace detail {

inline double seconds_of_product(at::Tensor const& matrix) {
  auto const begin = std::chrono::steady_clock::now();
  at::Tensor const product = at::mm(matrix, matrix);
  if (matrix.is_cuda()) torch::cuda::synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace detail

/// Measures a matrix product in FP32 and in BF16 for about `seconds`, in turn, so that other work
/// on the machine slows both alike, and takes the fastest of each. Training multiplies in the same
/// way; casts and other operators are not measured.
inline Matmul measure_matmul(at::Device device, double seconds = 1) {
  at::NoGradGuard const no_gradients;
  Matmul result{.device = device.is_cuda() ? "cuda" : "cpu", .size = device.is_cuda() ? 4096 : 768};
  double const flops = 2.0 * result.size * result.size * result.size;
  at::Tensor const fp32 = at::ones({result.size, result.size}, at::TensorOptions().device(device));
  at::Tensor const bf16 = fp32.to(at::kBFloat16);
  // The first product of each also loads kernels.
  detail::seconds_of_product(fp32);
  detail::seconds_of_product(bf16);
  double of_fp32 = std::numeric_limits<double>::infinity();
  double of_bf16 = of_fp32;
  auto const begin = std::chrono::steady_clock::now();
  auto const spent = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (int i = 0; i < 3 || (i < 200 && spent() < seconds); ++i) {
    of_fp32 = std::min(of_fp32, detail::seconds_of_product(fp32));
    of_bf16 = std::min(of_bf16, detail::seconds_of_product(bf16));
  }
  result.fp32 = flops / of_fp32;
  result.bf16 = flops / of_bf16;
  return result;
}

}  // namespace frugal::doctor
