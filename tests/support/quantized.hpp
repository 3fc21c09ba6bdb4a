// SPDX-License-Identifier: Apache-2.0
// The layers of tests/reference/quantized_training.json.
#pragma once

#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>

#include <frugal/policy/precision/scaled_linear.hpp>

#include <cstdint>
#include <type_traits>

#include "support/reference.hpp"

namespace frugal_test::support {

/// The largest difference, in relation to the largest expected number.
inline double relative(at::Tensor const& found, at::Tensor const& expected) {
  return distance(found, expected) / expected.abs().max().item<double>();
}

/// Compares the layer of one case, in a format, with what torchao computed.
template <class Format>
void check_layer(Json const& which, double tolerance) {
  auto const sizes = shape_in(which.at("sizes"));
  auto const outputs = static_cast<std::int64_t>(which.at("bias").size());
  torch::nn::Linear layer(sizes.back(), outputs);
  {
    at::NoGradGuard const no_gradients;
    layer->weight.copy_(tensor_in(which.at("weight"), {outputs, sizes.back()}));
    layer->bias.copy_(tensor_in(which.at("bias"), {outputs}));
  }
  at::Tensor input = tensor_in(which.at("input"), sizes).requires_grad_();
  auto sides = sizes;
  sides.back() = outputs;
  frugal::detail::ScaledLayers const layers(std::type_identity<Format>{}, *layer);
  at::Tensor output;
  {
    auto const acting = layers.act();
    output = layer->forward(input);
  }
  output.backward(tensor_in(which.at("gradient"), sides));
  CHECK(relative(output, tensor_in(which.at("output"), sides)) <= tolerance);
  CHECK(relative(input.grad(), tensor_in(which.at("of_input"), sizes)) <= tolerance);
  CHECK(relative(layer->weight.grad(), tensor_in(which.at("of_weight"), {outputs, sizes.back()})) <=
        tolerance);
  CHECK(relative(layer->bias.grad(), tensor_in(which.at("of_bias"), {outputs})) <= tolerance);
}

}  // namespace frugal_test::support
