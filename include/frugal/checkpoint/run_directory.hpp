// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/checkpoint_list.hpp>
#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/checkpoint/removal.hpp>
#include <frugal/checkpoint/verified.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {

/// How a run directory is opened.
enum class Access {
  train,     ///< creates it if missing; locks it
  maintain,  ///< it must exist; locks it
  read,      ///< it must exist; takes no lock and changes nothing
};

/// The newest valid checkpoint, and the damaged and unfit ones that are newer.
struct NewestValid {
  std::optional<SavedCheckpoint> checkpoint;
  std::vector<Damage> damaged;
  std::vector<Damage> unfit{};  ///< whole, and refused by the caller
};

/// The folder of one run: its lock and its checkpoints. One thread at a time.
///
///     runs/demo/  lock  checkpoints/step-00000500/{..., manifest.json}
class RunDirectory {
 public:
  /// LockError if another trainer holds it; StoreError if it does not exist or cannot be created.
  explicit RunDirectory(std::filesystem::path folder, Access access = Access::train,
                        LockBy lock_by = LockBy::automatic)
      : RunDirectory(std::move(folder), access, lock_by, nullptr) {}
  /// For training, under the lock of its file `lock`, which the caller has taken.
  RunDirectory(std::filesystem::path folder, std::shared_ptr<RunLock> lock)
      : RunDirectory(std::move(folder), Access::train, LockBy::automatic, std::move(lock)) {}

  std::filesystem::path const& folder() const noexcept { return folder_; }
  std::filesystem::path checkpoints_folder() const { return folder_ / "checkpoints"; }

  /// Findings of the opening, worth a log line: an owner that died, temporaries that were or could
  /// not be removed.
  std::vector<std::string> const& notes() const noexcept { return notes_; }

  CheckpointList list() const { return list_checkpoints(checkpoints_folder()); }

  /// Reads checkpoints in full, from the newest, until one is valid. NewerFormatError if a newer
  /// library wrote one; IoError if a permission or a descriptor is missing. `refused`: why the
  /// caller does not take one that is whole; empty if it does.
  FRUGAL_INLINE NewestValid
  newest_valid(std::function<std::string(SavedCheckpoint const&)> const& refused = {}) {
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

  /// Begins a checkpoint, which counts from commit(). LockError, here and wherever something is
  /// written or deleted, if the folder is no longer the one that was locked.
  FRUGAL_INLINE CheckpointWriter begin(std::uint64_t step) {
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

  FRUGAL_INLINE SavedCheckpoint commit(CheckpointWriter& writer,
                                       std::map<std::string, double> const& metrics = {},
                                       bool replaces = true) {
    require_lock();
    SavedCheckpoint checkpoint = writer.commit(metrics, replaces);
    verified_.remember(checkpoint);
    return checkpoint;
  }

  /// Whether its files are intact. Reads them only if they changed since the last check.
  bool holds(SavedCheckpoint const& checkpoint) { return verified_.holds(checkpoint); }

  /// Removes checkpoints: first renames all of them, durably, then deletes the files. A crash in
  /// between leaves temporaries for the next start. Skips checkpoints that were marked gold
  /// meanwhile.
  ///
  /// A file that another process holds open over a network, or a missing permission, must not end a
  /// run: a failed deletion is reported and retried at the next call.
  FRUGAL_INLINE Removal remove(std::vector<SavedCheckpoint> const& checkpoints) {
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

  /// For retention that could not read the checkpoints: reported like a failed deletion.
  FRUGAL_INLINE Removal could_not_look(StoreError const& error) {
    Removal out;
    deleter_.leave(checkpoints_folder(), error.fault().where + ": " + error.fault().why, out);
    return out;
  }

  /// What could not be deleted since the last call; each path is reported once, however often it is
  /// retried.
  std::vector<Damage> take_leftovers() { return deleter_.take_leftovers(); }

  /// StoreError unless opened for changes; LockError if the folder has been replaced.
  FRUGAL_INLINE void require_lock() const {
    if (lock_) return lock_->require_held();
    throw StoreError({.what = "the run directory was opened for reading only",
                      .where = folder_.string(),
                      .why = "",
                      .fix = "Open it with Access::train or Access::maintain."});
  }

 private:
  FRUGAL_INLINE RunDirectory(std::filesystem::path folder, Access access, LockBy lock_by,
                             std::shared_ptr<RunLock> lock)
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

  /// Removes what a crash left. Under the lock no other process is at work, so all of it is
  /// garbage.
  FRUGAL_INLINE void remove_temporaries() {
    for (auto const& path : entries_of(checkpoints_folder())) {
      if (!path.filename().string().starts_with(detail::temporary_prefix)) continue;
      std::error_code failure;
      // Marked gold while it was being deleted, by a process that could not rename it back.
      if (std::filesystem::exists(path / detail::gold_name, failure)) {
        notes_.push_back(path.string() + " is marked gold and stays: rename it back");
        continue;
      }
      std::filesystem::remove_all(path, failure);
      notes_.push_back(
          failure ? path.string() +
                        " is a remnant of a crash and cannot be removed: " + failure.message()
                  : path.string() + " is a remnant of a crash and was removed");
    }
  }

  std::filesystem::path folder_;
  std::shared_ptr<RunLock> lock_;  ///< null for Access::read
  std::uint64_t next_serial_ = 1;
  std::vector<std::string> notes_;
  detail::Deleter deleter_;
  detail::Verified verified_;
};

}  // namespace frugal
