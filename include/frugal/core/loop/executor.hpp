// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

// An executor decides how a window is executed. A policy that provides service::execution has a
// `template <class Passes> class Executor`, constructed from the run's passes, with these members:
//
//    explicit Executor(Passes&)
//    void settle(Source&, Cursor start)  set-up before the first window that needs batches of the
//                                        source; leaves the source at `start`
//    StepOutcome train(Source&)              one window: read, forward and backward passes, update
//    at::Tensor reevaluate()             recomputes the loss and gradients of the last window
//
// core/loop/eager.hpp has the shortest one; docs/writing_a_policy.md lists what the passes offer.

/// The outcome of a window.
enum class StepOutcome {
  nothing,  ///< the epoch has no batch left
  skipped,  ///< its gradients overflowed: not a step
  completed,
};

/// Who sees a pass. A trial pass is seen by the slots alone: they transform it, and it is not
/// counted.
enum class HookScope { all, slots };

/// A micro-batch's position in its window.
struct MicroBatchIndex {
  bool first;
  bool last;
};

}  // namespace frugal
