// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/run_traces.hpp>

#include <frugal/checkpoint/checkpoint_list.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <chrono>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE double written_at(std::filesystem::path const& file) {
  std::error_code gone;
  auto const time = std::filesystem::last_write_time(file, gone);
  if (gone) return 0;
  std::chrono::duration<double> const since =
      std::chrono::file_clock::to_sys(time).time_since_epoch();
  return since.count();
}

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
