// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

/// What a recipe is like, for the parts of a run that do not know its type. The loop has these as constants, in
/// detail::RecipeTraits.
struct RecipeFacts {
  bool captures_steps = false;  ///< a policy captures a step, and replays it (service::capture)
  bool agrees = false;          ///< several processes train together (service::reduce)
  bool divides = false;         ///< and divide the micro-batches of each window (service::share)
  bool shares = false;          ///< one of both: a window is this process's share of a larger one
  bool splits = false;          ///< a window is one batch of the source, cut into several
  int batches = 1;              ///< of the source, to a window
};

}  // namespace frugal
