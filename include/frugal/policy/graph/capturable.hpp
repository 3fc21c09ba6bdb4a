// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/compose/sentence.hpp>
#include <frugal/run/services.hpp>

namespace frugal::detail {

// What Graph demands of every policy of its recipe, those of the user's included.

FRUGAL_SENTENCE(
    waits_in_graph,
    "frugal: Graph<WholeStep> replays a step without asking the host, and a policy of this recipe "
    "waits for the device in every step. The compiler's note names it: take it out (an optimizer "
    "with a fused kernel, such as Optimize<AdamW>, in place of Optimize<Any>), or take "
    "Graph<WholeStep> out.");
FRUGAL_SENTENCE(
    not_capturable,
    "frugal: Graph<WholeStep> captures what policies do within a step, and a policy of this recipe "
    "that takes part in it does not say that this may be captured. The compiler's note names it: "
    "take it or Graph<WholeStep> out, or write `static constexpr bool capturable = true` in it if "
    "its hooks within a step call operators alone.");

FRUGAL_SENTENCE(
    not_placeable,
    "frugal: Graph<WholeStep> captures one micro-batch for all but the first of a window, and a "
    "policy of this recipe listens to around::micro_batch, which tells first and last. The "
    "compiler's note names it: take it or Graph<WholeStep> out.");

FRUGAL_SENTENCE(
    not_replayable,
    "frugal: Graph<WholeStep> replays a step without the module's output, and a policy of this "
    "recipe (TrainMetrics) measures that of each training batch. Take one of the two out; Validate "
    "measures beside Graph<WholeStep>.");

/// The hooks that are called while a step is captured.
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
