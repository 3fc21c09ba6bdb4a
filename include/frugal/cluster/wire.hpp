// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <type_traits>

#include <frugal/core/compose/list.hpp>
#include <frugal/policy/formats.hpp>

namespace frugal {

namespace detail {

/// Of a wire that has none.
struct NoWireSettings {};

}  // namespace detail

/// Option of Replicate<Ring>: the format in which gradients travel between processes. BF16: they are
/// rounded once before the sum, and added up in this format. PowerSGD<R> (power_sgd.hpp): a matrix
/// travels as two factors.
template <class Format>
struct Wire {
  static_assert(
      std::is_same_v<Format, BF16>,
      "frugal: Wire<...> takes BF16, which has the range of float, or PowerSGD<R>: FP16 cannot "
      "hold sums of gradients that are weighted by samples. Write Wire<BF16>.");
  using Settings = detail::NoWireSettings;
  using conflicts = list<>;
  static constexpr c10::ScalarType type = detail::scalar_type_of<BF16>;
  static constexpr int rank = 0;  ///< of the factors that travel; 0: gradients do
};

namespace detail {

template <class O>
inline constexpr bool is_wire = false;
template <class Format>
inline constexpr bool is_wire<Wire<Format>> = true;

struct wire_option {
  template <class O>
  static constexpr bool has = is_wire<O>;
};

/// What a recipe without Wire sends: gradients as they are.
struct NoWire {
  using Settings = NoWireSettings;
  using conflicts = list<>;
  static constexpr c10::ScalarType type = c10::ScalarType::Undefined;
  static constexpr int rank = 0;
};

}  // namespace detail
}  // namespace frugal
