// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/compose/composition.hpp>
#include <frugal/loop/captures.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

/// What a recipe asks of the loop, so that the loop has no code for what nobody asked for.
template <class Policies>
struct FitTraits {
  template <class Kind>
  using slot = slot_of<Kind, Policies>;

  /// Batches of the source to a window; with Accumulate<Auto> it is one, which is split.
  static constexpr int micro_batches = slot<kinds::accumulate>::steps;
  static constexpr bool splits = requires { slot<kinds::accumulate>::splits; };
  static constexpr bool probes = has<kinds::auto_batch, Policies>;
  static constexpr bool captures = captures_steps<Policies>;
  /// Does the optimizer compute a window's loss more than once?
  static constexpr bool reevaluates = requires { slot<kinds::optimizer>::reevaluates; };
  static constexpr bool saves = has<kinds::checkpoint, Policies>;
  static constexpr bool rolls_back = has<kinds::rollback, Policies>;
  static constexpr bool interruptible = has<kinds::spot, Policies>;
  static constexpr bool starts_on_cpu = has<kinds::start, Policies>;
};

}  // namespace frugal::detail
