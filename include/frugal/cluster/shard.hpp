// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Of Shard: the optimizer's moments.
struct States;

/// Option of Replicate: each process holds one part of what is named, and all the rest is in every
/// one. `Shard<States>`: a process has the moments of its part, updates that, and collects the other
/// parts of the weights.
template <class... What>
struct Shard;

namespace detail {

struct shard_option {
  template <class O>
  static constexpr bool has = std::is_same_v<O, Shard<States>>;
};

FRUGAL_DIAGNOSTIC(
    shard_and_unfreeze,
    "frugal: Shard divides the parameters that are trained from the first step on, and Unfreeze "
    "adds others later. Remove Shard or Unfreeze.");

FRUGAL_DIAGNOSTIC(
    shard_and_rollback,
    "frugal: Rollback keeps a copy of the run, and with Shard each process would have its part of "
    "that alone, which no checkpoint can hold. Remove Shard or Rollback.");

FRUGAL_DIAGNOSTIC(
    not_on_parts,
    "frugal: Shard<States> gives each process a part of the elements of gradients and weights, "
    "and a policy of this recipe takes whole tensors when it clips or updates. The compiler's note "
    "names the policy. Use ClipNorm, ClipValue, and Optimize with AdamW, Adam, SGD or Adagrad, or "
    "remove Shard; in a policy of your own that treats each element by itself, write `static "
    "constexpr bool works_on_parts = true`, and in an optimizer call `phase.collect_parts()` after "
    "the update.");

using ShardConflicts = list<conflict<kinds::unfreeze, shard_and_unfreeze>,
                            conflict<kinds::rollback, shard_and_rollback>>;

template <class P>
constexpr bool says_works_on_parts() {
  if constexpr (requires { P::works_on_parts; }) {
    return P::works_on_parts;
  } else {
    return false;
  }
}

/// Shard's demand on every policy that may look at gradients.
struct WorksOnParts {
  using sentence = not_on_parts;
  template <class P>
  static constexpr bool met =
      is_null<P> || says_works_on_parts<P>() ||
      !(contains<on::gradients, typename P::listens> || contains<on::update, typename P::listens>);
};

}  // namespace detail
}  // namespace frugal
