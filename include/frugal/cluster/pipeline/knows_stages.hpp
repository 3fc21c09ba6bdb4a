// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

// Pipeline's demand on every policy of its recipe, user-defined policies included.

FRUGAL_DIAGNOSTIC(
    knows_no_stages,
    "frugal: with Pipeline a process has the layers of its own stages alone, and a policy of this "
    "recipe needs the whole module: Rollback, Recompute, Activations, Lora, Freeze and "
    "others. The compiler's note names the policy. Remove it or Pipeline, or write `static "
    "constexpr "
    "bool knows_stages = true` in a policy of your own that is right with a part of the module.");

FRUGAL_DIAGNOSTIC(
    pipeline_and_replicate,
    "frugal: Pipeline and Replicate would both divide the micro-batches of a step. Remove "
    "Replicate. "
    "For several copies of a pipeline write Pipeline<OneForwardOneBackward, Exact>{.with = "
    "grid.stages, .copies = grid.data}, with a Grid.");
using PipelineConflicts = list<conflict<kinds::replicate, pipeline_and_replicate>>;

/// Kinds that treat each parameter by itself, or see losses and norms of all stages, and whose States
/// save what belongs to a parameter under its name: see TensorPlaces. Replicate has a sentence of its own.
using kinds_with_stages =
    list<kinds::precision, kinds::accumulate, kinds::clip, kinds::optimizer, kinds::schedule,
         kinds::validate, kinds::pipeline, kinds::replicate, kinds::average, kinds::checkpoint,
         kinds::early_stop, kinds::flush_denormals, kinds::keep_host_memory, kinds::skip_non_finite,
         kinds::spot, kinds::stop_after>;

template <class P>
constexpr bool says_knows_stages() {
  if constexpr (requires { P::knows_stages; }) {
    return P::knows_stages;
  } else {
    return false;
  }
}

struct KnowsStages {
  using sentence = knows_no_stages;
  template <class P>
  static constexpr bool met =
      is_null<P> || is_once_per_run<typename P::kind>() ||
      contains<typename P::kind, kinds_with_stages> || says_knows_stages<P>();
};

}  // namespace frugal::detail
