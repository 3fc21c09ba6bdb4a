// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/report.hpp>
#include <frugal/core/run/run_state.hpp>

// The code before a run's first event and after its last one.
namespace frugal::detail {

/// Puts the module on the run's device, into training mode and without gradients. ModuleError without
/// trainable parameters, DeviceError if the device in the settings is not available.
void prepare(RunState& run);

/// `seconds`: duration of this fit in this process.
Report report_of(RunState const& run, double seconds, MemoryPeaks const& memory);

/// A fit after another one may train nothing, or the same again. `repeats`: the trainer's last fit
/// had this seed.
void advise_of_earlier_fit(Report& report, bool repeats);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/ends.ipp>
#endif
