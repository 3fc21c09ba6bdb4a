// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_id.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>

namespace frugal::detail {

/// `hint` is appended to the fix.
LockError lock_refusal(std::filesystem::path const& lock, std::optional<LockOwner> const& owner,
                       std::string const& hint);

std::string removal_hint(std::initializer_list<std::filesystem::path> files);

/// LockError unless the name still refers to the file that was locked.
void require_same_file(std::filesystem::path const& path, FileId const& held);

/// The lock for file systems without flock: a file `lock.owner` that names its owner. An orderly
/// end removes it; an owner killed on this machine can be recognised as dead.
class OwnerFile {
 public:
  static std::filesystem::path path_of(std::filesystem::path lock) { return lock += ".owner"; }

  /// LockError unless the existing file `path` belongs to a dead owner.
  static void require_dead(std::filesystem::path const& path, std::filesystem::path const& lock);

  explicit OwnerFile(std::filesystem::path const& lock);
  OwnerFile(OwnerFile const&) = delete;
  OwnerFile& operator=(OwnerFile const&) = delete;
  /// If the folder was renamed and replaced, the file now belongs to another trainer.
  ~OwnerFile() {
    if (FileId::of(path_) == id_) ::unlink(path_.c_str());
  }

  void require_held() const { require_same_file(path_, id_); }

 private:
  /// Two trainers that find the same dead owner must not both win, and neither may remove the
  /// other's new file: the one that creates the folder may replace it, the other is refused.
  void replace_dead_owner(std::filesystem::path const& mine);

  std::filesystem::path lock_;
  std::filesystem::path path_;
  FileId id_;
};

}  // namespace frugal::detail

namespace frugal {

/// How a lock is held.
enum class LockBy {
  automatic,   ///< kernel if the file system supports it, else owner_file
  kernel,      ///< flock: released whenever the owner ends, however it ends
  owner_file,  ///< a file that names its owner, for file systems without flock
};

/// Locks a run directory against a second trainer for the lifetime of this object.
///
/// The file stays after the lock is released: removing it would let two owners lock two files with
/// one name. After an orderly end it is empty; otherwise it names the owner that died.
///
/// Two trainers detect each other even if only one of them uses the kernel's lock: each announces
/// itself first and then looks for the other.
class [[nodiscard]] RunLock {
 public:
  /// LockError if a live owner holds it; StoreError if the file cannot be created, or is a link.
  explicit RunLock(std::filesystem::path path, LockBy by = LockBy::automatic);
  RunLock(RunLock const&) = delete;
  RunLock& operator=(RunLock const&) = delete;

  ~RunLock();

  /// The previous owner, if it did not end in order.
  std::optional<LockOwner> const& left_by() const noexcept { return left_by_; }

  /// LockError unless the locked name still refers to the locked file. The lock moves with a
  /// renamed folder, while writes by name go to whatever has that name now.
  void require_held() const;

 private:
  void open();

  void take(LockBy by);

  /// LockError if the owner named in the file may be alive.
  void require_gone(LockOwner const& owner, bool by_kernel) const;

  /// False if the file system has no such locks.
  bool take_kernel_lock(LockBy by);

  void write(std::string const& text);

  std::filesystem::path path_;
  std::optional<detail::OwnerFile> owner_file_;  ///< empty with a kernel lock
  int descriptor_ = -1;
  detail::FileId id_;  ///< of the open file
  std::optional<LockOwner> left_by_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/lock.ipp>
#endif
