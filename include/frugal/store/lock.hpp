// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/file_id.hpp>
#include <frugal/store/io_error.hpp>
#include <frugal/store/lock_owner.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <initializer_list>
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
///
/// Two trainers find each other also where only one of them has the kernel's lock: each says first
/// that it is here, and then looks for the other.
class RunLock {
 public:
  /// LockError if somebody alive holds it; StoreError if the file cannot be made, or is a link.
  explicit RunLock(std::filesystem::path path, LockBy by = LockBy::automatic)
      : path_(std::move(path)) {
    open();
    try {
      take(by);
    } catch (...) {
      release();
      throw;
    }
  }
  RunLock(RunLock const&) = delete;
  RunLock& operator=(RunLock const&) = delete;

  ~RunLock() {
    // Nothing can be done about a failure, and a filled file only costs the next owner a remark.
    if (::ftruncate(descriptor_, 0) != 0) errno = 0;
    release();
  }

  /// Who held it before and did not come to an orderly end.
  std::optional<LockOwner> const& left_by() const noexcept { return left_by_; }

  /// LockError unless the name that was locked still means the file that is locked. The lock moves
  /// with a folder that is renamed, and what is written by name goes to whatever stands there now.
  void require_held() const {
    require_same(path_, id_);
    if (!owner_file_.empty()) require_same(owner_file_, owner_id_);
  }

 private:
  void open() {
    do {
      // A link would have its target emptied.
      descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0 && errno == ELOOP) {
      throw StoreError({.what = "the lock of a run directory is a symbolic link",
                        .where = path_.string(),
                        .why = "it would be written to where it leads",
                        .mend = "Remove the link, and see who made it."});
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

  /// Only what is still this lock's: the owner's file of a folder that was renamed away may be
  /// another trainer's by now.
  void release() noexcept {
    if (!owner_file_.empty() && detail::FileId::of(owner_file_) == owner_id_) {
      ::unlink(owner_file_.c_str());
    }
    ::close(descriptor_);
  }

  void take(LockBy by) {
    bool const by_kernel = by != LockBy::owner_file && take_kernel_lock(by);
    if (!by_kernel) take_owner_file();
    left_by_ = detail::read_owner(path_);
    // Of another machine nothing is known: the kernel's lock says that it is gone, a file does not.
    auto const life = left_by_ ? left_by_->life() : LockOwner::Life::dead;
    if (life == LockOwner::Life::alive || (life == LockOwner::Life::unknown && !by_kernel)) {
      throw refusal(left_by_, hint({path_}));
    }
    write(LockOwner::here().text());
    if (!by_kernel) return;
    auto const held = owner_path();
    if (!detail::FileId::of(held)) return;
    try {
      require_dead(detail::read_owner(held), held);
    } catch (...) {
      write(left_by_ ? left_by_->text() : "");
      throw;
    }
  }

  /// False where the file system has no such locks.
  bool take_kernel_lock(LockBy by) {
    int result = 0;
    do {
      result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return true;
    if (errno == EWOULDBLOCK) throw refusal(detail::read_owner(path_), "");
    bool const unknown = errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS;
    if (by == LockBy::automatic && unknown) return false;
    throw detail::io_error("flock", path_, errno);
  }

  std::filesystem::path owner_path() const {
    auto path = path_;
    path += ".owner";
    return path;
  }

  void take_owner_file() {
    auto const held = owner_path();
    auto mine = path_;
    mine += "." + host_name() + "." + std::to_string(::getpid());
    try {
      detail::write_small_file(mine, LockOwner::here().text());
      auto const id = detail::FileId::of(mine);
      if (!id) throw detail::io_error("lstat", mine, errno);
      // link() is atomic also over networks, where O_EXCL was not always. There it may also say
      // EEXIST of its own deed, when the answer to the first try was lost.
      if (::link(mine.c_str(), held.c_str()) != 0) {
        int const code = errno;
        if (detail::FileId::of(held) != id) {
          if (code != EEXIST) throw detail::io_error("link", held, code);
          replace_dead_owner(held, mine);
        }
      }
      owner_id_ = *id;
      owner_file_ = held;
    } catch (...) {
      ::unlink(mine.c_str());
      throw;
    }
    ::unlink(mine.c_str());
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
      bool const both = owner && detail::read_owner(path_) == owner;
      throw refusal(owner, both ? hint({held, path_}) : hint({held}));
    }
  }

  static std::string hint(std::initializer_list<std::filesystem::path> files) {
    std::string names;
    for (auto const& file : files) names += (names.empty() ? "" : " and ") + file.string();
    return "If that process is gone for certain, remove " + names + ".";
  }

  static void require_same(std::filesystem::path const& path, detail::FileId const& held) {
    auto const now = detail::FileId::of(path);
    if (now == held) return;
    if (!now && errno != ENOENT && errno != ENOTDIR) throw detail::io_error("lstat", path, errno);
    throw LockError({.what = "this run has lost its run directory",
                     .where = path.string(),
                     .why = now ? "another file has this name than the one that was locked: the "
                                  "folder was renamed, or replaced"
                                : "the file that was locked has no longer this name: the folder "
                                  "was renamed, or removed",
                     .mend = "Start again with the folder that is meant; nothing was written to "
                             "this one, or deleted in it, since."});
  }

  LockError refusal(std::optional<LockOwner> const& owner, std::string const& hint) const {
    std::string mend = "Stop that one, or give another run directory.";
    if (!hint.empty()) mend += " " + hint;
    return LockError({.what = "another trainer works in this run directory",
                      .where = path_.string(),
                      .why = owner ? "it is " + owner->words() : "it has not said who it is",
                      .mend = std::move(mend)});
  }

  void write(std::string const& text) {
    // For the error text of others only; on a full disk the lock itself holds all the same.
    if (::ftruncate(descriptor_, 0) != 0 ||
        ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      errno = 0;
    }
  }

  std::filesystem::path path_;
  std::filesystem::path owner_file_;  ///< empty with a kernel lock
  int descriptor_ = -1;
  detail::FileId id_;        ///< of what is open
  detail::FileId owner_id_;  ///< of the owner's file
  std::optional<LockOwner> left_by_;
};

}  // namespace frugal
