// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/services.hpp>

namespace frugal::detail {

// CudaGraph's demands on every policy of its recipe, user-defined policies included.

FRUGAL_DIAGNOSTIC(
    waits_in_graph,
    "frugal: CudaGraph<WholeStep> replays a step without the host, and a policy of this "
    "recipe waits for the device in every step. The compiler's note names the policy. "
    "Remove it (for example, use Optimize<AdamW>, which has a fused kernel, instead of "
    "Optimize<Any>), or remove CudaGraph<WholeStep>.");
FRUGAL_DIAGNOSTIC(
    not_capturable,
    "frugal: CudaGraph<WholeStep> captures the hooks within a step, and a policy of this "
    "recipe has such a hook without declaring it capturable. The compiler's note names "
    "the policy. Remove it or CudaGraph<WholeStep>, or write `static constexpr bool "
    "capturable = true` in it if these hooks call tensor operators only.");

FRUGAL_DIAGNOSTIC(
    not_placeable,
    "frugal: CudaGraph<WholeStep> captures one micro-batch for all but the first of a window, and "
    "a "
    "policy of this recipe listens to around::micro_batch, which tells the first and last "
    "micro-batch. The compiler's note names the policy. Remove it or CudaGraph<WholeStep>.");

FRUGAL_DIAGNOSTIC(
    not_replayable,
    "frugal: CudaGraph<WholeStep> replays a step without the module's output, and a policy of this "
    "recipe (TrainMetrics) measures that of each training batch. Remove one of the two; Validate "
    "works with CudaGraph<WholeStep>.");

/// The hooks that are called during a capture.
inline constexpr unsigned hooks_in_step =
    hook_mask<list<around::forward, on::loss, on::backward, on::gradients, on::update>>;

template <class P>
constexpr bool says_capturable() {
  if constexpr (requires { P::capturable; }) {
    return P::capturable;
  } else {
    return false;
  }
}

struct WaitsForNothing {
  using sentence = waits_in_graph;
  template <class P>
  static constexpr bool met = about_of<P>().host_syncs_per_step == 0;
};
struct Capturable {
  using sentence = not_capturable;
  template <class P>
  static constexpr bool met = !WaitsForNothing::met<P> || says_capturable<P>() ||
                              (hook_mask<typename P::listens> & hooks_in_step) == 0;
};

struct Replayable {
  using sentence = not_replayable;
  template <class P>
  static constexpr bool met = !contains<service::measure, typename provides_of<P>::type>;
};

struct Placeable {
  using sentence = not_placeable;
  template <class P>
  static constexpr bool met =
      (hook_mask<typename P::listens> & hook_mask<list<around::micro_batch>>) == 0;
};

}  // namespace frugal::detail
