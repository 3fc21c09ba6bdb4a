// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Every operator is launched by the host when its turn comes: what fills the execution slot when
/// nothing else does.
struct Eager {
  using kind = kinds::execution;
  using listens = list<>;
};

template <>
struct null_policy<kinds::execution> {
  using type = Eager;
};

}  // namespace frugal
