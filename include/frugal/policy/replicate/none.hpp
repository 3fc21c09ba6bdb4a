// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// How the module's copies in several processes stay equal. `Replicate<Exact>` and
/// `Replicate<Ring>` are in <frugal/cluster.hpp>, component cluster.
template <class... Options>
struct Replicate;

/// One process: the null policy of its slot.
template <>
struct Replicate<> {
  using kind = kinds::replicate;
  using listens = list<>;
};

template <>
struct null_policy<kinds::replicate> {
  using type = Replicate<>;
};

}  // namespace frugal
