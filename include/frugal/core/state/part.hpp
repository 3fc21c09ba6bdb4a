// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

/// The parts of a run that a snapshot can hold.
enum class Part : unsigned {
  module = 1,       ///< parameters and buffers, on whichever device they are at restore
  modes = 2,        ///< training or evaluation, for each submodule
  states = 4,       ///< training progress, and every policy's state
  slots = 8,        ///< the states of the slots alone, and the results of the last step
  generators = 16,  ///< those that the run uses on its device
  window = 32,      ///< what the passes of a window change: buffers, counters, losses
  device = 64,      ///< the module's device
  resumable = module | states | generators,        ///< everything that going back restores
  outside = module | modes | device | generators,  ///< everything that belongs to the module's
                                                   ///< owner
  tried = module | modes | slots | generators,     ///< everything that trial steps must leave
                                                   ///< unchanged
  passes = window | generators,                    ///< everything that retrying a window restores
};
constexpr Part operator|(Part a, Part b) {
  return static_cast<Part>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool holds(Part parts, Part one) {
  return (static_cast<unsigned>(parts) & static_cast<unsigned>(one)) != 0;
}

/// How a StateWriter stores tensors.
enum class CopyTarget {
  on_device,  ///< copied on their own device
  on_host,    ///< copied to host memory, page-locked for device tensors; see finish()
  none,       ///< not copied, if contiguous in host memory; otherwise as on_host
  live,       ///< not copied: the tensors themselves, wherever they are, to look at
};

}  // namespace frugal
