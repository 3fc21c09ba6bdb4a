// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace frugal::detail {

/// The marks that a process has left in its run folder, which a kill does not take away.
struct RunTraces {
  double newest = 0;       ///< when a file of it was last written, in seconds since 1970; 0: never
  std::uint64_t step = 0;  ///< of the newest checkpoint
};

/// When a file was last written, in seconds since 1970 by the clock of its file system; 0 if it is not there. Workers on
/// several machines have one such clock, and each a clock of its own that may go wrong by minutes.
double written_at(std::filesystem::path const& file);

/// Files that other processes remove meanwhile are passed over; so are those of the lock `claim`, which whoever
/// looks holds.
RunTraces traces_in(std::filesystem::path const& folder);

/// Removes the checkpoints of a trial that is over and has no weights to keep: hundreds of them would fill the
/// disk.
void remove_checkpoints(std::filesystem::path const& folder);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/run_traces.ipp>
#endif
