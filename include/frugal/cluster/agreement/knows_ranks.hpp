// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

// Replicate's demand on every policy of its recipe, user-defined policies included.

FRUGAL_DIAGNOSTIC(
    knows_no_ranks,
    "frugal: Replicate runs a recipe in several processes, and a policy of this recipe does not "
    "know of the others: it would write the same file in each, or come to another state in each. "
    "The compiler's note names the policy. Remove it or Replicate, or write `static constexpr bool "
    "knows_ranks = true` in a policy of your own that does the same in every process.");

/// Kinds whose States come out the same in every process, because the gradients, losses and weights
/// that they see are the same.
using kinds_with_ranks =
    list<kinds::precision, kinds::accumulate, kinds::clip, kinds::optimizer, kinds::schedule,
         kinds::validate, kinds::replicate, kinds::activations, kinds::average, kinds::checkpoint,
         kinds::distil, kinds::early_stop, kinds::flush_denormals, kinds::freeze,
         kinds::keep_host_memory, kinds::lora, kinds::pipeline, kinds::recompute, kinds::rollback,
         kinds::skip_non_finite, kinds::spot, kinds::stop_after, kinds::train_metrics,
         kinds::unfreeze, kinds::warm_start>;

template <class P>
constexpr bool says_knows_ranks() {
  if constexpr (requires { P::knows_ranks; }) {
    return P::knows_ranks;
  } else {
    return false;
  }
}

struct KnowsRanks {
  using sentence = knows_no_ranks;
  template <class P>
  static constexpr bool met = is_null<P> || is_once_per_run<typename P::kind>() ||
                              contains<typename P::kind, kinds_with_ranks> || says_knows_ranks<P>();
};

}  // namespace frugal::detail
