// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <concepts>

namespace frugal {

// Number formats of 16 bits, by the names of Precision's: the header of a policy that stores in one
// does without the header of the policy that computes in it.
struct BF16;  ///< 8 bits of precision, and the range of float
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
