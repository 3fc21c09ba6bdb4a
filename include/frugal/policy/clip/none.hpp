// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Does not change gradients: the null policy of the clip slot.
struct NoClip {
  using kind = kinds::clip;
  using listens = list<>;
};

template <>
struct null_policy<kinds::clip> {
  using type = NoClip;
};

}  // namespace frugal
