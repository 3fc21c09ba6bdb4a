// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <frugal/base/folder.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// Locks Settings::run_dir against other trainers, which would write into the same files. The first
/// policy of a fit that writes there takes the lock, and the others share it; it is held until the
/// fit, and everybody who has the result, is gone. LockError if another trainer has it; StoreError
/// if it cannot be made.
FRUGAL_INLINE std::shared_ptr<RunLock> lock_run_folder(RunState& run) {
  if (!run.folder_lock) {
    create_folders(run.settings.run_dir);
    run.folder_lock = std::make_shared<RunLock>(run.settings.run_dir / "lock");
  }
  return std::static_pointer_cast<RunLock>(run.folder_lock);
}

/// For a policy that can do without: a folder in which no file can be made is a warning.
FRUGAL_INLINE std::shared_ptr<RunLock> lock_run_folder_if_possible(RunState& run) {
  try {
    return lock_run_folder(run);
  } catch (IoError const& error) {
    run.warn("the folder " + run.settings.run_dir.string() +
             " cannot be locked, so nothing would notice a second trainer that writes into it: " +
             error.fault().where + ": " + error.fault().why);
    return nullptr;
  }
}

}  // namespace frugal::detail
