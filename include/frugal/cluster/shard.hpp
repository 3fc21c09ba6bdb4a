// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <frugal/cluster/agreement/knows_ranks.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Of Shard: the optimizer's moments.
struct States;
/// Of Shard: the sums of gradients.
struct Grads;
/// Of Shard: the weights of layers.
struct Params;

/// Option of Replicate: each process holds one part of what is named, and all the rest is in every
/// one. `Shard<States>`: a process has the moments of its part, updates that, and collects the other
/// parts of the weights (ZeRO, stage 1). `Shard<States, Grads>`: nor does it have the sums of other
/// parts' gradients (stage 2). `Shard<States, Grads, Params>`: nor other parts of the weights of Linear,
/// Conv2d and Embedding, but while the layer computes (stage 3).
template <class... What>
struct Shard;

namespace detail {

struct shard_option {
  template <class O>
  static constexpr bool has =
      std::is_same_v<O, Shard<States>> || std::is_same_v<O, Shard<States, Grads>> ||
      std::is_same_v<O, Shard<States, Grads, Params>>;
};

/// What a recipe without Shard has.
struct NoShard;

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

FRUGAL_DIAGNOSTIC(
    reads_weights,
    "frugal: with Shard<States, Grads, Params> a process has the weights of a layer while that "
    "computes, and a policy of this recipe reads weights at other times. The compiler's note names "
    "the "
    "policy. Remove it, or use Shard<States, Grads>.");

/// Kinds that look at no weights but by way of a layer's call, the optimizer or a checkpoint.
using kinds_without_weights =
    list<kinds::precision, kinds::accumulate, kinds::clip, kinds::optimizer, kinds::schedule,
         kinds::validate, kinds::replicate, kinds::activations, kinds::checkpoint,
         kinds::early_stop, kinds::flush_denormals, kinds::keep_host_memory, kinds::recompute,
         kinds::skip_non_finite, kinds::spot, kinds::stop_after, kinds::train_metrics>;

/// The demand of Shard<States, Grads, Params> on every policy.
struct WorksWithoutWeights {
  using sentence = reads_weights;
  template <class P>
  static constexpr bool met =
      is_null<P> || is_once_per_run<typename P::kind>() ||
      contains<typename P::kind, kinds_without_weights> || says_knows_ranks<P>();
};

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
