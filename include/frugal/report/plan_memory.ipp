// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan_memory.hpp>

#include <frugal/inline.hpp>

#include <concepts>
#include <exception>
#include <optional>

namespace frugal::detail {

FRUGAL_INLINE std::uint64_t bytes_in_memory(at::Tensor const& tensor) {
  return std::min<std::uint64_t>(tensor.nbytes(), tensor.storage().nbytes());
}

}  // namespace frugal::detail
