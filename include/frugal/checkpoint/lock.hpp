// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_id.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/checkpoint/owner_file.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

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
  FRUGAL_INLINE explicit RunLock(std::filesystem::path path, LockBy by = LockBy::automatic)
      : path_(std::move(path)) {
    open();
    try {
      take(by);
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  RunLock(RunLock const&) = delete;
  RunLock& operator=(RunLock const&) = delete;

  FRUGAL_INLINE ~RunLock() {
    // A failure here cannot be handled; a non-empty file only costs the next owner a note.
    if (::ftruncate(descriptor_, 0) != 0) errno = 0;
    owner_file_.reset();
    ::close(descriptor_);
  }

  /// The previous owner, if it did not end in order.
  std::optional<LockOwner> const& left_by() const noexcept { return left_by_; }

  /// LockError unless the locked name still refers to the locked file. The lock moves with a
  /// renamed folder, while writes by name go to whatever has that name now.
  FRUGAL_INLINE void require_held() const {
    detail::require_same_file(path_, id_);
    if (owner_file_) owner_file_->require_held();
  }

 private:
  FRUGAL_INLINE void open() {
    descriptor_ = detail::open_run_file(path_, O_RDWR | O_CREAT);
    if (descriptor_ < 0 && errno == ELOOP) {
      throw StoreError({.what = "the lock of a run directory is a symbolic link",
                        .where = path_.string(),
                        .why = "it would be written to where it leads",
                        .fix = "Remove the link, and see who made it."});
    }
    struct stat status{};
    if (descriptor_ < 0) throw detail::io_error("open", path_, errno);
    if (::fstat(descriptor_, &status) != 0) {
      int const code = errno;
      ::close(descriptor_);
      throw detail::io_error("fstat", path_, code);
    }
    id_ = detail::FileId::of(status);
  }

  FRUGAL_INLINE void take(LockBy by) {
    bool const by_kernel = by != LockBy::owner_file && take_kernel_lock(by);
    if (!by_kernel) owner_file_.emplace(path_);
    left_by_ = detail::read_owner(path_);
    if (left_by_) require_gone(*left_by_, by_kernel);
    write(LockOwner::here().text());
    auto const other = detail::OwnerFile::path_of(path_);
    if (!by_kernel || !detail::FileId::of(other)) return;
    try {
      detail::OwnerFile::require_dead(other, path_);
    } catch (...) {
      write(left_by_ ? left_by_->text() : "");
      throw;
    }
  }

  /// LockError if the owner named in the file may be alive.
  FRUGAL_INLINE void require_gone(LockOwner const& owner, bool by_kernel) const {
    auto const life = owner.life();
    bool gone = life == LockOwner::Life::dead;
    // A kernel lock proves that an owner on another machine is gone; a file does not.
    gone = gone || (life == LockOwner::Life::unknown && by_kernel);
    // A program that restarted itself with exec() lost the kernel's lock and kept its process id.
    gone = gone || (owner.pid == ::getpid() && by_kernel);
    if (!gone) throw detail::lock_refusal(path_, owner, detail::removal_hint({path_}));
  }

  /// False if the file system has no such locks.
  FRUGAL_INLINE bool take_kernel_lock(LockBy by) {
    int result = 0;
    do {
      result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return true;
    if (errno == EWOULDBLOCK) throw detail::lock_refusal(path_, detail::read_owner(path_), "");
    bool const unknown = errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS;
    if (by == LockBy::automatic && unknown) return false;
    throw detail::io_error("flock", path_, errno);
  }

  FRUGAL_INLINE void write(std::string const& text) {
    // Only for other processes' error text; on a full disk the lock holds all the same.
    if (::ftruncate(descriptor_, 0) != 0 ||
        ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      errno = 0;
    }
  }

  std::filesystem::path path_;
  std::optional<detail::OwnerFile> owner_file_;  ///< empty with a kernel lock
  int descriptor_ = -1;
  detail::FileId id_;  ///< of the open file
  std::optional<LockOwner> left_by_;
};

}  // namespace frugal
