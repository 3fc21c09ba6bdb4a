// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/finite.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor numbers_of(at::Tensor const& tensor) {
  if (!tensor.defined() || tensor.is_quantized()) return {};
  if (tensor.layout() == at::kSparse) return numbers_of(tensor._values());
  if (tensor.layout() == at::kSparseCsr) return numbers_of(tensor.values());
  if (tensor.layout() != at::kStrided) return numbers_of(tensor.to_dense());
  if (tensor.numel() == 0) return {};
  if (tensor.is_complex()) return numbers_of(at::view_as_real(tensor.resolve_conj()));
  switch (tensor.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kBFloat16:
    case at::kHalf:
      return tensor;
    default:
      return tensor.is_floating_point() ? tensor.to(at::kFloat) : at::Tensor();
  }
}

FRUGAL_INLINE bool non_finite_on_host(at::Tensor const& numbers) {
  if (!numbers.is_non_overlapping_and_dense()) return non_finite_on_host(numbers.contiguous());
  void const* const data = numbers.const_data_ptr();
  auto const count = static_cast<std::size_t>(numbers.numel());
  switch (numbers.scalar_type()) {
    case at::kDouble:
      return any_exponent_full<std::uint64_t, 0x7FF0000000000000>(data, count);
    case at::kBFloat16:
      return any_exponent_full<std::uint16_t, 0x7F80>(data, count);
    case at::kHalf:
      return any_exponent_full<std::uint16_t, 0x7C00>(data, count);
    default:
      return any_exponent_full<std::uint32_t, 0x7F800000>(data, count);
  }
}

FRUGAL_INLINE at::Tensor non_finite_marks(std::vector<at::Tensor> const& numbers) {
  std::vector<at::Tensor> largest =
      at::_foreach_norm(numbers, std::numeric_limits<double>::infinity());
  for (at::Tensor& each : largest) {
    if (each.device() != largest.front().device()) {
      each = each.to(largest.front().device(), /*non_blocking=*/true);
    }
  }
  return at::stack(largest).mul_(0);
}

FRUGAL_INLINE at::Tensor non_finite_flag(std::vector<at::Tensor> const& tensors) {
  at::NoGradGuard const no_gradients;
  std::vector<at::Tensor> numbers;
  numbers.reserve(tensors.size());
  for (at::Tensor const& each : tensors) {
    if (at::Tensor const of = numbers_of(each); of.defined()) numbers.push_back(of);
  }
  if (numbers.empty()) {
    auto const options = at::TensorOptions().dtype(at::kBool);
    return at::zeros({}, tensors.empty() ? options : options.device(tensors.front().device()));
  }
  return non_finite_marks(numbers).sum().ne(0);
}

FRUGAL_INLINE std::optional<std::size_t> first_non_finite(std::vector<at::Tensor> const& tensors) {
  at::NoGradGuard const no_gradients;
  struct There {
    std::vector<at::Tensor> numbers;
    std::vector<std::size_t> indices;
  };
  std::map<std::string, There> elsewhere;  // by device
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    at::Tensor numbers = numbers_of(tensors[i]);
    if (!numbers.defined()) continue;
    if (numbers.is_cpu()) {
      if (first || !non_finite_on_host(numbers)) continue;
      first = i;
    } else {
      There& there = elsewhere[numbers.device().str()];
      there.numbers.push_back(std::move(numbers));
      there.indices.push_back(i);
    }
  }
  for (auto const& [device, there] : elsewhere) {
    at::Tensor const marks = non_finite_marks(there.numbers).cpu().to(at::kDouble);
    auto const* const mark = static_cast<double const*>(marks.const_data_ptr());
    for (std::size_t i = 0; i < there.indices.size(); ++i) {
      if (mark[i] != 0 && (!first || there.indices[i] < *first)) first = there.indices[i];
    }
  }
  return first;
}

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
