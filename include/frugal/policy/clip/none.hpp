// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Leaves gradients as they are: what fills the clip slot when nothing else does.
struct NoClip {
  using kind = kinds::clip;
  using listens = list<>;
};

template <>
struct null_policy<kinds::clip> {
  using type = NoClip;
};

}  // namespace frugal
