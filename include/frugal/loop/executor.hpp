// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

// How a window is executed is an executor's word: a policy that provides service::execution has a
// `template <class Passes> class Executor`, made of the passes of the run, with these members:
//
//     explicit Executor(Passes&)
//     void settle(Source&, Cursor start)  before the first window: what has to be found out with
//                                         batches of the source is, and the source left at `start`
//     Trained train(Source&)              a window: read, pass forward and backward, update
//     at::Tensor reevaluate()             the loss and the gradients of the last window once more
//
// loop/eager.hpp has the shortest, and docs/writing_a_policy.md what the passes offer.

/// What has become of a window.
enum class Trained {
  nothing,  ///< the epoch has no batch left
  skipped,  ///< its gradients had overflowed: it is no step
  a_step,
};

/// Who hears of a pass. A trial is none but the slots': it transforms, and is not counted.
enum class Audience { all, slots };

/// Where in its window a micro-batch stands.
struct InWindow {
  bool first;
  bool last;
};

}  // namespace frugal
