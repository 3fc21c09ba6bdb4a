// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include <frugal/checkpoint/checkpoint_list.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// The marks that a process has left in its run folder, which a kill does not take away.
struct RunTraces {
  double newest = 0;       ///< when a file of it was last written, in seconds since 1970; 0: never
  std::uint64_t step = 0;  ///< of the newest checkpoint
};

/// When a file was last written, in seconds since 1970 by the clock of its file system; 0 if it is not there. Workers on
/// several machines have one such clock, and each a clock of its own that may go wrong by minutes.
FRUGAL_INLINE double written_at(std::filesystem::path const& file) {
  std::error_code gone;
  auto const time = std::filesystem::last_write_time(file, gone);
  if (gone) return 0;
  std::chrono::duration<double> const since =
      std::chrono::file_clock::to_sys(time).time_since_epoch();
  return since.count();
}

/// Files that other processes remove meanwhile are passed over; so are those of the lock `claim`, which whoever
/// looks holds.
FRUGAL_INLINE RunTraces traces_in(std::filesystem::path const& folder) {
  namespace fs = std::filesystem;
  RunTraces found;
  std::error_code error;
  for (fs::recursive_directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    auto const name = each->path().filename().string();
    if (name == "claim" || name.starts_with("claim.")) continue;
    double const time = written_at(each->path());
    if (time == 0) continue;
    found.newest = std::max(found.newest, time);
    if (each->path().parent_path().filename() != "checkpoints") continue;
    found.step = std::max(found.step, step_of_name(name).value_or(0));
  }
  return found;
}

/// Removes the checkpoints of a trial that is over and has no weights to keep: hundreds of them would fill the
/// disk.
FRUGAL_INLINE void remove_checkpoints(std::filesystem::path const& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "checkpoints", ignored)) return;
  try {
    RunLock const claim(folder / "claim");
    std::filesystem::remove_all(folder / "checkpoints", ignored);
  } catch (StoreError const&) {  // another process has it, or the folder is not there
  }
}

}  // namespace frugal::detail
