// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/environment.hpp>

#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

#include <ATen/Parallel.h>

namespace frugal::detail {

FRUGAL_INLINE Environment environment_of(RunState const& run) {
  Environment all;
  all["threads"] = static_cast<std::uint64_t>(at::get_num_threads());
  all["interop_threads"] = static_cast<std::uint64_t>(at::get_num_interop_threads());
  if (run.progress.horizon().steps_per_epoch)
    all["steps_per_epoch"] = *run.progress.horizon().steps_per_epoch;
  if (run.progress.horizon().samples_per_epoch)
    all["samples_per_epoch"] = *run.progress.horizon().samples_per_epoch;
  return all;
}

FRUGAL_INLINE void compare_environments(RunState& run, Environment const& saved) {
  Environment const here = environment_of(run);
  auto const differs = [&](char const* name) {
    auto const there = saved.find(name);
    auto const now = here.find(name);
    return there != saved.end() && now != here.end() && there->second != now->second;
  };
  auto const both = [&](char const* name, std::string const& unit) {
    return std::to_string(saved.at(name)) + unit + " and continues with " +
           std::to_string(here.at(name));
  };
  if (differs("threads")) {
    run.warn("the checkpoint was made with " + both("threads", " threads") +
             ": sums over threads may differ in their last bits; at::set_num_threads or "
             "OMP_NUM_THREADS gives it the former number");
  }
  if (differs("interop_threads")) {
    run.warn("the checkpoint was made with " +
             both("interop_threads", " threads between operators") +
             ": parallel tasks of a module (at::launch) may end in another order");
  }
  if (differs("samples_per_epoch")) {
    run.warn("the checkpoint was made with " + both("samples_per_epoch", " samples in an epoch") +
             ": the training data has changed, and so has its order");
  } else if (differs("steps_per_epoch")) {
    run.warn("the checkpoint was made with " + both("steps_per_epoch", " steps in an epoch") +
             ": its batches or the training data have changed, and so has their order");
  }
}

}  // namespace frugal::detail
