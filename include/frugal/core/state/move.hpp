// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

namespace frugal::detail {

/// Moves a run to another device between two windows: the module, and everything in persist().
///
/// It is a resume without a file: saves every state that a checkpoint would hold, moves the module,
/// and loads the states back with their tensors on the new device. So a policy that supports
/// resuming also supports moving, without code of its own. A State that reads a loss or a flag from
/// the device to save it waits for the device here.
///
/// State that is not persisted must last for one step at most, or check the device where it uses
/// its tensors: gradients and the overflow flag end with their window, and the loop's constants
/// compare devices.
template <class Run>
void move_run(Run& run, c10::Device to) {
  at::NoGradGuard const no_gradients;
  StateDict state;
  StateWriter writer(state, CopyTarget::none);
  run.persist(writer);
  writer.finish();
  run.root.to(to);
  run.device = to;
  run.window.forget_overflow();
  StateReader reader(state, to);
  run.persist(reader);
}

}  // namespace frugal::detail
