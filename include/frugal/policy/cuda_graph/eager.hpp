// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// The host launches every operator in turn: the null policy of the execution slot.
struct Eager {
  using kind = kinds::execution;
  using listens = list<>;
};

template <>
struct null_policy<kinds::execution> {
  using type = Eager;
};

}  // namespace frugal
