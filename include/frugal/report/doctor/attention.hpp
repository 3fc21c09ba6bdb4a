// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/doctor/machine.hpp>

#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal::doctor {

namespace detail {

inline std::string name_of(at::SDPBackend kernel) {
  switch (kernel) {
    case at::SDPBackend::math:
      return "math";
    case at::SDPBackend::flash_attention:
      return "flash";
    case at::SDPBackend::efficient_attention:
      return "memory-efficient";
    case at::SDPBackend::cudnn_attention:
      return "cuDNN";
    case at::SDPBackend::overrideable:
      return "the device's own";
    default:
      return "none";
  }
}

}  // namespace detail

/// The kernel that scaled_dot_product_attention takes in training on this device, in FP32 and BF16: causal, and with a
/// mask of padded tokens. LibTorch is asked, and nothing is computed. "math" keeps the scores, [batch, heads, tokens,
/// tokens], for the backward pass; the others do not.
inline std::vector<AttentionKernel> attention_kernels(at::Device device) {
  constexpr std::int64_t batch = 2, heads = 8, tokens = 512, width = 64;
  at::AutoGradMode const training(true);
  std::vector<AttentionKernel> all;
  for (auto const& [format, type] :
       {std::pair("FP32", at::kFloat), std::pair("BF16", at::kBFloat16)}) {
    at::Tensor const heads_BHTC =
        at::zeros({batch, heads, tokens, width}, at::TensorOptions(type).device(device))
            .requires_grad_();
    at::Tensor const attend_B11T =
        at::ones({batch, 1, 1, tokens}, at::TensorOptions(at::kBool).device(device));
    auto const kernel = [&](std::optional<at::Tensor> const& mask, bool is_causal) {
      return detail::name_of(static_cast<at::SDPBackend>(at::_fused_sdp_choice(
          heads_BHTC, heads_BHTC, heads_BHTC, mask, /*dropout_p=*/0.0, is_causal)));
    };
    all.push_back(
        {.format = format, .causal = kernel({}, true), .masked = kernel(attend_B11T, false)});
  }
  return all;
}

}  // namespace frugal::doctor
