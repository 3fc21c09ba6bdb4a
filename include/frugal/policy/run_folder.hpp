// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <frugal/checkpoint/lock.hpp>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// Locks Settings::run_dir against other trainers, which would write into the same files. The first
/// policy of a fit that writes there takes the lock, and the others share it; it is held until the
/// fit, and everybody who has the result, is gone. LockError if another trainer has it; StoreError
/// if it cannot be made.
std::shared_ptr<RunLock> lock_run_folder(RunState& run);

/// For a policy that can do without: a folder in which no file can be made is a warning.
std::shared_ptr<RunLock> lock_run_folder_if_possible(RunState& run);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/run_folder.ipp>
#endif
