// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/run_folder.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::shared_ptr<RunLock> lock_run_folder(RunState& run) {
  if (!run.set_up.folder_lock()) {
    create_folders(run.settings.run_dir);
    run.set_up.hold_folder(std::make_shared<RunLock>(run.settings.run_dir / "lock"));
  }
  return std::static_pointer_cast<RunLock>(run.set_up.folder_lock());
}

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
