// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include <frugal/cluster/local_steps/outer_optimizer.hpp>
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/cluster/shard.hpp>
#include <frugal/cluster/wire.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Option of Replicate: each process makes H optimizer steps with weights of its own, and then all
/// processes make one outer step together (Outer).
template <std::uint64_t H>
struct LocalSteps {
  static_assert(H > 0,
                "frugal: LocalSteps<H> counts the optimizer steps between two outer steps. Write "
                "LocalSteps<64>.");
};

namespace detail {

FRUGAL_DIAGNOSTIC(local_steps_and_unfreeze,
                  "frugal: LocalSteps exchanges the weights that are trained from the first step "
                  "on, and Unfreeze "
                  "adds others later. Remove Unfreeze, or use Replicate<Exact>.");

FRUGAL_DIAGNOSTIC(
    local_steps_and_rollback,
    "frugal: Rollback keeps a copy of the run, and with LocalSteps each process would have another "
    "one, which no checkpoint can hold. Add SkipNonFinite instead, or use Replicate<Exact>.");

/// What the options of Replicate<LocalSteps<H>, ...> say.
template <class... Options>
struct LocalStepsOptions {
  using all = ReplicateOptions<Options...>;
  static_assert(!all::shards,
                "frugal: Shard<States> updates a part of the weights in each process, and with "
                "LocalSteps each process updates all of its own. Remove Shard, or use "
                "Replicate<Exact, Shard<States>>.");
  static_assert(
      std::is_same_v<typename all::wire, NoWire>,
      "frugal: Wire<...> rounds gradients on their way, and with LocalSteps weights travel "
      "instead. Remove Wire, or use Replicate<Ring, Wire<BF16>>.");
  static_assert(options_known<list<outer_option, shard_option, wire_option>, Options...> &&
                    options_unique<list<outer_option>, Options...>,
                "frugal: Replicate<LocalSteps<H>, ...>: unknown option, or one twice. Options: "
                "Outer<Nesterov>, Outer<SGD>.");

  using outer = option_of<outer_option, Outer<Nesterov>, Options...>;
  using conflicts = list<conflict<kinds::unfreeze, local_steps_and_unfreeze>,
                         conflict<kinds::rollback, local_steps_and_rollback>>;
};

}  // namespace detail
}  // namespace frugal
