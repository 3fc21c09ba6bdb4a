// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/tally.hpp>

#include <frugal/inline.hpp>

#include <cstdint>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void Tally::add(at::Tensor const& scalar) {
  if (scalar.is_cpu()) {
    host_ += number(scalar);
  } else {
    at::Tensor const part = scalar.to(at::kDouble);
    device_ = device_.defined() ? device_.to(part.device()) + part : part;
  }
}

FRUGAL_INLINE double Tally::number(at::Tensor const& scalar) {
  if (scalar.scalar_type() == at::kLong) {
    return static_cast<double>(*static_cast<std::int64_t const*>(scalar.const_data_ptr()));
  }
  if (scalar.scalar_type() == at::kDouble) {
    return *static_cast<double const*>(scalar.const_data_ptr());
  }
  return scalar.item<double>();
}

FRUGAL_INLINE void Tally::set(double all) {
  host_ = all;
  device_ = at::Tensor();
}

FRUGAL_INLINE void TensorTally::add(at::Tensor const& part) {
  at::Tensor const exact = part.to(at::kDouble);
  // A run may have moved to another device since the last part.
  sum_ = sum_.defined() ? sum_.to(exact.device()) + exact : exact;
}

}  // namespace frugal::detail
