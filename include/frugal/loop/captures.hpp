// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/compose/composition.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

template <class Slot>
inline constexpr bool captures = requires { Slot::captures; };

template <class List>
consteval bool captures_in() {
  if constexpr (has<kinds::execution, List>) {
    return captures<slot_of<kinds::execution, List>>;
  } else {
    return false;
  }
}

}  // namespace detail

/// Are the steps of this recipe captured and replayed? Then what a policy does within a step has
/// to be done by operators alone: numbers of the host stay what they were at the capture.
template <class Policies>
inline constexpr bool captures_steps = detail::captures_in<Policies>();

}  // namespace frugal
