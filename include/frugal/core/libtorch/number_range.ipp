// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/number_range.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace frugal::detail {

FRUGAL_INLINE double largest_number(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return 65504;
    case at::kBFloat16:
      return 0x1.FEp127;
    case at::kFloat:
      return std::numeric_limits<float>::max();
    case at::kFloat8_e4m3fn:
      return 448;
    case at::kFloat8_e4m3fnuz:
      return 240;
    case at::kFloat8_e5m2:
    case at::kFloat8_e5m2fnuz:
      return 57344;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

FRUGAL_INLINE bool convertible(at::ScalarType from, at::ScalarType to) {
  if (from == to) return true;
  if (from == at::ScalarType::Undefined) return false;
  if (at::isFloat8Type(from) || at::isFloat8Type(to)) return false;
  if (at::isFloatingType(from)) return at::isFloatingType(to);
  return at::isIntegralType(from, false) && at::isIntegralType(to, false) &&
         !at::isBarebonesUnsignedType(from) && !at::isBarebonesUnsignedType(to) &&
         at::promoteTypes(from, to) == to;
}

FRUGAL_INLINE std::optional<double> beyond_range(at::Tensor const& tensor, at::ScalarType type) {
  double const most = largest_number(type);
  if (!tensor.is_floating_point() || tensor.numel() == 0 ||
      largest_number(tensor.scalar_type()) <= most) {
    return std::nullopt;
  }
  at::NoGradGuard const no_gradients;
  at::Tensor const numbers =
      at::isReducedFloatingType(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor.detach();
  auto const [low, high] = at::aminmax(numbers);
  double reach = std::max(-low.item<double>(), high.item<double>());
  if (!std::isfinite(reach) || low.isnan().item<bool>()) {
    // Numbers that are infinite already stay so, and hide the others.
    reach = numbers.abs().masked_fill_(numbers.isfinite().logical_not_(), 0).max().item<double>();
  }
  return reach > most ? std::optional(reach) : std::nullopt;
}

}  // namespace frugal::detail
