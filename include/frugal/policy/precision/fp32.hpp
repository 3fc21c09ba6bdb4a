// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// The number format of forward and backward; weights and optimizer stay FP32. `Format` is FP32,
/// BF16, FP16, INT8, FP8, or FromEnv<...> of these.
template <class Format>
struct Precision {
  static_assert(detail::never<Format>,
                "frugal: Precision<...>: unknown format. Options: FP32, BF16, FP16, INT8, FP8, "
                "FromEnv<...>. frugal/policy/precision.hpp includes all.");
};

struct FP32 {
  static constexpr char const* name = "FP32";
};

/// No autocast.
template <>
struct Precision<FP32> {
  using kind = kinds::precision;
  using listens = list<>;

  /// Format of forward and backward, for other policies.
  static std::string_view format() { return FP32::name; }
};

template <>
struct null_policy<kinds::precision> {
  using type = Precision<FP32>;
};

}  // namespace frugal
