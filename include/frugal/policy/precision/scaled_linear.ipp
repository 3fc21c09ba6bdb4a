// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/precision/scaled_linear.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE void refuse_second_derivative(char const* format) {
  if (!at::GradMode::is_enabled()) return;
  throw ModuleError({.what = "the backward pass of a quantized layer is to be differentiated",
                     .where = "Precision<" + std::string(format) + ">",
                     .why = "rounding has no derivative, so the second one would be wrong",
                     .fix = "Call backward without create_graph, or use Precision<BF16>."});
}

FRUGAL_INLINE std::vector<at::Tensor> linear_weights(torch::nn::Module& module,
                                                     std::int64_t multiple) {
  std::vector<at::Tensor> found;
  module.apply([&](torch::nn::Module& part) {
    auto const* const linear = part.as<torch::nn::LinearImpl>();
    if (linear == nullptr || !linear->weight.defined()) return;
    at::Tensor const& weight = linear->weight;
    bool const known =
        std::ranges::any_of(found, [&](at::Tensor const& other) { return other.is_same(weight); });
    bool const fits = weight.size(0) % multiple == 0 && weight.size(1) % multiple == 0;
    if (fits && !known) found.push_back(weight);
  });
  return found;
}

FRUGAL_INLINE std::string no_scaled_layers(char const* format, std::int64_t multiple) {
  return "Precision<" + std::string(format) +
         "> does nothing: it computes linear layers whose inputs and outputs are multiples of " +
         std::to_string(multiple) + ", and this module has none";
}

}  // namespace frugal::detail
