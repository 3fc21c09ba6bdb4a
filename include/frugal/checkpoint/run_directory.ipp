// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/run_directory.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE bool Verified::holds(SavedCheckpoint const& checkpoint) {
  auto const known = known_.find(checkpoint.folder);
  if (known != known_.end() && stamps_of(checkpoint) == known->second) return true;
  try {
    verify(checkpoint);
  } catch (StoreError const& error) {
    if (!is_damage(error)) throw;
    return false;
  }
  remember(checkpoint);
  return true;
}

FRUGAL_INLINE std::optional<std::vector<FileStamp>> Verified::stamps_of(
    SavedCheckpoint const& checkpoint) {
  std::vector<FileStamp> stamps;
  auto const add = [&](std::filesystem::path const& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return false;
    stamps.push_back(FileStamp::of(status));
    return true;
  };
  if (!add(checkpoint.folder / Manifest::file_name)) return std::nullopt;
  for (FileEntry const& entry : checkpoint.manifest.files) {
    if (!add(checkpoint.folder / entry.name)) return std::nullopt;
  }
  return stamps;
}

FRUGAL_INLINE void Deleter::remove(std::filesystem::path const& checkpoints,
                                   std::vector<std::filesystem::path> moved, Removal& out) {
  if (!moved.empty()) {
    try {
      sync_folder(checkpoints);
    } catch (StoreError const& error) {
      // The old names may come back after a crash, and would name half-empty folders.
      for (auto const& path : moved) leave(path, error.fault().why, out);
      moved.clear();
    }
  }
  for (auto& path : std::exchange(unfinished_, {})) moved.push_back(std::move(path));
  for (auto& path : moved) {
    try {
      remove_tree(path);
    } catch (StoreError const& error) {
      leave(path, error.fault().why, out);
      unfinished_.push_back(std::move(path));
    }
  }
}

FRUGAL_INLINE void Deleter::leave(std::filesystem::path const& path, std::string const& why,
                                  Removal& out) {
  out.left.push_back({path, why});
  if (told_.insert(path).second) left_.push_back({path, why});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE NewestValid
RunDirectory::newest_valid(std::function<std::string(SavedCheckpoint const&)> const& refused) {
  CheckpointList list = this->list();
  NewestValid out;
  // Their steps are unknown: any of them may have been the newest, so all are reported.
  out.damaged = std::move(list.damaged);
  for (SavedCheckpoint& checkpoint : list.whole) {
    try {
      verify(checkpoint);
    } catch (StoreError const& error) {
      if (!detail::is_damage(error)) throw;
      out.damaged.push_back({checkpoint.folder, error.what()});
      continue;
    }
    verified_.remember(checkpoint);
    if (std::string why = refused ? refused(checkpoint) : std::string(); !why.empty()) {
      out.unfit.push_back({checkpoint.folder, std::move(why)});
      continue;
    }
    out.checkpoint = std::move(checkpoint);
    break;
  }
  return out;
}

FRUGAL_INLINE CheckpointWriter RunDirectory::begin(std::uint64_t step) {
  require_lock();
  if (next_serial_ > Manifest::largest_serial) {
    throw StoreError({.what = "this run directory has no serial number for another save",
                      .where = folder_.string(),
                      .why = "one of its checkpoints has serial " +
                             std::to_string(Manifest::largest_serial) + ", the largest",
                      .fix = "Continue in another folder; no run saves so often by itself."});
  }
  return CheckpointWriter(checkpoints_folder(), step, next_serial_++);
}

FRUGAL_INLINE SavedCheckpoint RunDirectory::commit(CheckpointWriter& writer,
                                                   std::map<std::string, double> const& metrics,
                                                   bool replaces) {
  require_lock();
  SavedCheckpoint checkpoint = writer.commit(metrics, replaces);
  verified_.remember(checkpoint);
  return checkpoint;
}

FRUGAL_INLINE Removal RunDirectory::remove(std::vector<SavedCheckpoint> const& checkpoints) {
  Removal out;
  std::vector<std::filesystem::path> moved;
  for (SavedCheckpoint const& checkpoint : checkpoints) {
    require_lock();
    auto const to =
        checkpoints_folder() / detail::temporary_name(checkpoint.folder.filename().string());
    verified_.forget(checkpoint.folder);
    try {
      rename_path(checkpoint.folder, to);
      std::error_code ignored;
      // Check again under the new name, which no other process uses, so that a mark made a moment
      // ago is not overlooked.
      if (std::filesystem::exists(to / detail::gold_name, ignored)) {
        rename_path(to, checkpoint.folder);
        continue;
      }
    } catch (StoreError const& error) {
      deleter_.leave(checkpoint.folder, error.fault().why, out);
      continue;
    }
    moved.push_back(to);
    out.removed.push_back(checkpoint);
  }
  require_lock();
  deleter_.remove(checkpoints_folder(), std::move(moved), out);
  return out;
}

FRUGAL_INLINE Removal RunDirectory::could_not_look(StoreError const& error) {
  Removal out;
  deleter_.leave(checkpoints_folder(), error.fault().where + ": " + error.fault().why, out);
  return out;
}

FRUGAL_INLINE void RunDirectory::require_lock() const {
  if (lock_) return lock_->require_held();
  throw StoreError({.what = "the run directory was opened for reading only",
                    .where = folder_.string(),
                    .why = "",
                    .fix = "Open it with Access::train or Access::maintain."});
}

FRUGAL_INLINE RunDirectory::RunDirectory(std::filesystem::path folder, Access access,
                                         LockBy lock_by, std::shared_ptr<RunLock> lock)
    : folder_(std::move(folder)), lock_(std::move(lock)) {
  std::error_code failure;
  if (access == Access::train) {
    create_folders(checkpoints_folder());
    sync_folder(folder_);  // an earlier start may have died before it did this
  } else if (!std::filesystem::is_directory(folder_, failure)) {
    throw detail::io_error("open", folder_, failure ? failure.value() : ENOENT);
  }
  if (access == Access::read) return;
  if (!lock_) lock_ = std::make_shared<RunLock>(folder_ / "lock", lock_by);
  if (auto const& owner = lock_->left_by()) {
    notes_.push_back("the run was not ended in order by " + owner->words());
  }
  remove_temporaries();
  CheckpointList const found = list_checkpoints(checkpoints_folder());
  for (SavedCheckpoint const& checkpoint : found.whole) {
    next_serial_ = std::max(next_serial_, checkpoint.manifest.serial + 1);
  }
}

FRUGAL_INLINE void RunDirectory::remove_temporaries() {
  for (auto const& path : entries_of(checkpoints_folder())) {
    if (!path.filename().string().starts_with(detail::temporary_prefix)) continue;
    std::error_code failure;
    // Marked gold while it was being deleted, by a process that could not rename it back.
    if (std::filesystem::exists(path / detail::gold_name, failure)) {
      notes_.push_back(path.string() + " is marked gold and stays: rename it back");
      continue;
    }
    std::filesystem::remove_all(path, failure);
    notes_.push_back(failure ? path.string() + " is a remnant of a crash and cannot be removed: " +
                                   failure.message()
                             : path.string() + " is a remnant of a crash and was removed");
  }
}

}  // namespace frugal
