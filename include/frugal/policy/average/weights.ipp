// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/average/weights.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void AveragedWeights::refuse(std::string why) {
  throw StateError({.what = "the averaged weights do not fit the module",
                    .where = "AveragedWeights::copy_into",
                    .why = std::move(why),
                    .fix = "Give a module with the layers of the trained one."});
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE at::ScalarType type_of_average(at::Tensor const& parameter) {
  at::ScalarType const type = parameter.scalar_type();
  if (parameter.is_complex()) return type == at::kComplexHalf ? at::kComplexFloat : type;
  if (!parameter.is_floating_point()) return at::ScalarType::Undefined;
  return at::isReducedFloatingType(type) ? at::kFloat : type;
}

FRUGAL_INLINE std::uint64_t bytes_of_average(at::Tensor const& parameter) {
  at::ScalarType const type = type_of_average(parameter);
  if (type == at::ScalarType::Undefined) return 0;
  return static_cast<std::uint64_t>(parameter.numel()) * c10::elementSize(type);
}

FRUGAL_INLINE void Lent::lend(std::vector<at::Tensor> const& others) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    own_.push_back(parameters_[i].detach());
    parameters_[i].set_data(others[i]);
  }
}

}  // namespace frugal::detail
