// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

// Operators of LibTorch that have no C++ function.

template <class... Args>
at::Tensor call_operator(c10::OperatorHandle const& op, Args&&... args) {
  torch::jit::Stack stack;
  torch::jit::push(stack, std::forward<Args>(args)...);
  op.callBoxed(stack);
  return stack.front().toTensor();
}

/// A convolution of 8-bit numbers by oneDNN, with numbers of FP32 as its result. The weight's layout for
/// it is made in every call: kept, it would take as much memory as the weight.
FRUGAL_INLINE at::Tensor quantised_conv2d(LayerCall const& call, at::Tensor const& input, double scale,
                                          std::int64_t zero_point, at::Tensor const& values,
                                          at::Tensor const& scales) {
  auto& dispatcher = c10::Dispatcher::singleton();
  static c10::OperatorHandle const prepack =
      dispatcher.findSchemaOrThrow("onednn::qconv_prepack", "");
  static c10::OperatorHandle const convolve =
      dispatcher.findSchemaOrThrow("onednn::qconv2d_pointwise", "");
  std::optional<std::vector<std::int64_t>> const shape = input.sizes().vec();
  at::Tensor const packed = call_operator(prepack, values, scales, scale, zero_point, call.stride,
                                          call.padding, call.dilation, call.groups, shape);
  std::optional<at::Tensor> const bias = call.bias.defined() ? std::optional(call.bias) : std::nullopt;
  return call_operator(convolve, input, scale, zero_point, packed, scales,
                       at::zeros_like(scales, at::kLong), bias, call.stride, call.padding,
                       call.dilation, call.groups, /*output_scale=*/1.0,
                       /*output_zero_point=*/std::int64_t{0}, std::optional(at::kFloat),
                       std::string("none"), c10::List<std::optional<at::Scalar>>(),
                       std::optional<std::string>(""));
}

}  // namespace frugal::detail
