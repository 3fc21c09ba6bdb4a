// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/io_error.hpp>
#include <frugal/store/lock_owner.hpp>

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
  automatic,   ///< kernel where the file system can, else owner_file
  kernel,      ///< flock: vanishes with its owner, however that one ends
  owner_file,  ///< a file that names its owner, for file systems without flock
};

/// Keeps a second trainer out of a run directory for as long as it lives.
///
/// The file stays when the lock is gone: removing it would let two owners lock two files of one
/// name. It is empty after an orderly end; else it names who left it behind.
class RunLock {
 public:
  /// LockError if somebody alive holds it; StoreError if the file cannot be made.
  explicit RunLock(std::filesystem::path path, LockBy by = LockBy::automatic)
      : path_(std::move(path)) {
    open();
    if (by == LockBy::owner_file || !take_kernel_lock(by)) take_owner_file();
    left_by_ = detail::read_owner(path_);
    write_owner();
  }
  RunLock(RunLock const&) = delete;
  RunLock& operator=(RunLock const&) = delete;

  ~RunLock() {
    // Nothing can be done about a failure, and a filled file only costs the next owner a remark.
    if (::ftruncate(descriptor_, 0) != 0) errno = 0;
    if (!owner_file_.empty()) ::unlink(owner_file_.c_str());
    ::close(descriptor_);
  }

  /// Who held it before and did not come to an orderly end.
  std::optional<LockOwner> const& left_by() const noexcept { return left_by_; }

 private:
  void open() {
    do {
      descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) throw detail::io_error("open", path_, errno);
  }

  // An exception leaves the constructor, and no destructor runs.
  template <class Failure>
  [[noreturn]] void leave(Failure failure) {
    ::close(descriptor_);
    throw failure;
  }

  /// False where the file system has no such locks.
  bool take_kernel_lock(LockBy by) {
    int result = 0;
    do {
      result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return true;
    if (errno == EWOULDBLOCK) leave(refusal(detail::read_owner(path_), ""));
    bool const unknown = errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS;
    if (by == LockBy::automatic && unknown) return false;
    leave(detail::io_error("flock", path_, errno));
  }

  void take_owner_file() {
    auto held = path_;
    held += ".owner";
    auto mine = path_;
    mine += "." + host_name() + "." + std::to_string(::getpid());
    try {
      detail::write_small_file(mine, LockOwner::here().text());
      // link() is atomic also over networks, where O_EXCL was not always.
      if (::link(mine.c_str(), held.c_str()) != 0) {
        if (errno != EEXIST) throw detail::io_error("link", held, errno);
        replace_dead_owner(held, mine);
      }
    } catch (...) {
      ::unlink(mine.c_str());
      ::close(descriptor_);
      throw;
    }
    ::unlink(mine.c_str());
    owner_file_ = held;
  }

  /// Two that find the same dead owner must not both win, nor one remove the other's new file: who
  /// makes the folder may replace, the other is refused.
  void replace_dead_owner(std::filesystem::path const& held, std::filesystem::path const& mine) {
    auto door = path_;
    door += ".takeover";
    require_dead(detail::read_owner(held), held);
    if (::mkdir(door.c_str(), 0777) != 0) {
      throw refusal(std::nullopt,
                    "If nobody else is starting right now, remove " + door.string() + ".");
    }
    try {
      require_dead(detail::read_owner(held), held);  // still the dead one's?
      if (::rename(mine.c_str(), held.c_str()) != 0) throw detail::io_error("rename", held, errno);
    } catch (...) {
      ::rmdir(door.c_str());
      throw;
    }
    ::rmdir(door.c_str());
  }

  void require_dead(std::optional<LockOwner> const& owner,
                    std::filesystem::path const& held) const {
    if (!owner || owner->life() != LockOwner::Life::dead) {
      throw refusal(owner, "If that process is gone for certain, remove " + held.string() + ".");
    }
  }

  LockError refusal(std::optional<LockOwner> const& owner, std::string const& hint) const {
    std::string mend = "Stop that one, or give another run directory.";
    if (!hint.empty()) mend += " " + hint;
    return LockError({.what = "another trainer works in this run directory",
                      .where = path_.string(),
                      .why = owner ? "it is " + owner->words() : "it has not said who it is",
                      .mend = std::move(mend)});
  }

  void write_owner() {
    std::string const text = LockOwner::here().text();
    // For the error text of others only; on a full disk the lock itself holds all the same.
    if (::ftruncate(descriptor_, 0) != 0 ||
        ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      errno = 0;
    }
  }

  std::filesystem::path path_;
  std::filesystem::path owner_file_;  ///< empty with a kernel lock
  int descriptor_ = -1;
  std::optional<LockOwner> left_by_;
};

}  // namespace frugal
