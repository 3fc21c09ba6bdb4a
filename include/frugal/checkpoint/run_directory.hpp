// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_id.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Caches which checkpoints are valid, so that gigabytes are not read again at every save. An entry
/// expires when any file of the checkpoint is written to, replaced or removed.
class Verified {
 public:
  /// Call it after the checkpoint was verified, or written and fsynced.
  void remember(SavedCheckpoint const& checkpoint) {
    if (auto const stamps = stamps_of(checkpoint)) known_[checkpoint.folder] = *stamps;
  }

  /// Whether the checkpoint is valid; reads it if that is unknown. Throws errors other than damage.
  bool holds(SavedCheckpoint const& checkpoint);

  void forget(std::filesystem::path const& folder) { known_.erase(folder); }

 private:
  static std::optional<std::vector<FileStamp>> stamps_of(SavedCheckpoint const& checkpoint);

  std::map<std::filesystem::path, std::vector<FileStamp>> known_;
};

}  // namespace frugal::detail

namespace frugal {

/// The result of deleting checkpoints.
struct Removal {
  std::vector<SavedCheckpoint> removed;  ///< no longer checkpoints
  std::vector<Damage> left;              ///< what could not be deleted, and why
};

}  // namespace frugal

namespace frugal::detail {

/// Deletes the files of checkpoints that have lost their names, as far as possible. A file that
/// another process holds open over a network, or a missing permission, must not end a run: a failed
/// deletion is reported, and retried at the next call.
class Deleter {
 public:
  /// `moved`: folders in `checkpoints` that have lost their names. Also retries those that earlier
  /// calls could not delete.
  void remove(std::filesystem::path const& checkpoints, std::vector<std::filesystem::path> moved,
              Removal& out);

  void leave(std::filesystem::path const& path, std::string const& why, Removal& out);

  /// What could not be deleted since the last call of this function; each path is reported once,
  /// however often it is retried.
  std::vector<Damage> take_leftovers() { return std::exchange(left_, {}); }

 private:
  std::vector<std::filesystem::path> unfinished_;
  std::vector<Damage> left_;
  std::set<std::filesystem::path> told_;
};

}  // namespace frugal::detail

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
  NewestValid newest_valid(std::function<std::string(SavedCheckpoint const&)> const& refused = {});

  /// Begins a checkpoint, which counts from commit(). LockError, here and wherever something is
  /// written or deleted, if the folder is no longer the one that was locked.
  CheckpointWriter begin(std::uint64_t step);

  SavedCheckpoint commit(CheckpointWriter& writer,
                         std::map<std::string, double> const& metrics = {}, bool replaces = true);

  /// Whether its files are intact. Reads them only if they changed since the last check.
  bool holds(SavedCheckpoint const& checkpoint) { return verified_.holds(checkpoint); }

  /// Removes checkpoints: first renames all of them, durably, then deletes the files. A crash in
  /// between leaves temporaries for the next start. Skips checkpoints that were marked gold
  /// meanwhile.
  ///
  /// A file that another process holds open over a network, or a missing permission, must not end a
  /// run: a failed deletion is reported and retried at the next call.
  Removal remove(std::vector<SavedCheckpoint> const& checkpoints);

  /// For retention that could not read the checkpoints: reported like a failed deletion.
  Removal could_not_look(StoreError const& error);

  /// What could not be deleted since the last call; each path is reported once, however often it is
  /// retried.
  std::vector<Damage> take_leftovers() { return deleter_.take_leftovers(); }

  /// StoreError unless opened for changes; LockError if the folder has been replaced.
  void require_lock() const;

 private:
  RunDirectory(std::filesystem::path folder, Access access, LockBy lock_by,
               std::shared_ptr<RunLock> lock);

  /// Removes what a crash left. Under the lock no other process is at work, so all of it is
  /// garbage.
  void remove_temporaries();

  std::filesystem::path folder_;
  std::shared_ptr<RunLock> lock_;  ///< null for Access::read
  std::uint64_t next_serial_ = 1;
  std::vector<std::string> notes_;
  detail::Deleter deleter_;
  detail::Verified verified_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/run_directory.ipp>
#endif
