// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>

#include <frugal/state/state_dict.hpp>
#include <frugal/state/state_reader.hpp>
#include <frugal/state/state_writer.hpp>

namespace frugal::detail {

/// Moves a run between two windows to another device: the module, and all that persist() shows.
///
/// It is a resume without a file. Every state that a checkpoint would hold is saved, and loaded
/// into the same states once the module has moved, with its tensors on the device. So who survives
/// a resume survives a move, and no policy can forget it. What reads a loss or a flag of a device
/// to save it waits for it here.
///
/// What is not persisted has to be of one step, or look where its tensors are needed: the gradients
/// and the flag of an overflow end with their window, and the loop's own constants compare devices.
template <class Run>
void move_run(Run& run, c10::Device to) {
  at::NoGradGuard const no_gradients;
  StateDict state;
  StateWriter writer(state, Copies::none);
  run.persist(writer);
  writer.settle();
  run.root.to(to);
  run.device = to;
  run.overflow = {};
  StateReader reader(state, to);
  run.persist(reader);
}

}  // namespace frugal::detail
