// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <concepts>

namespace frugal {

// 16-bit number formats, named as in Precision: a policy that stores in one does not include the
// policy that computes in it.
struct BF16;  ///< 8 bits of precision, range of float
struct FP16;  ///< 11 bits of precision, up to 65504

namespace detail {

template <class Format>
inline constexpr bool is_half_format = std::same_as<Format, BF16> || std::same_as<Format, FP16>;

template <class Format>
  requires is_half_format<Format>
inline constexpr c10::ScalarType scalar_type_of =
    std::same_as<Format, BF16> ? c10::ScalarType::BFloat16 : c10::ScalarType::Half;

}  // namespace detail
}  // namespace frugal
