// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/lock.hpp>

#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE LockError lock_refusal(std::filesystem::path const& lock,
                                     std::optional<LockOwner> const& owner,
                                     std::string const& hint) {
  std::string fix = "Stop that trainer, or set another run directory.";
  if (!hint.empty()) fix += " " + hint;
  return LockError({.what = "another trainer works in this run directory",
                    .where = lock.string(),
                    .why = owner ? "it is " + owner->words() : "the lock does not name it",
                    .fix = std::move(fix)});
}

FRUGAL_INLINE std::string removal_hint(std::initializer_list<std::filesystem::path> files) {
  std::string names;
  for (auto const& file : files) names += (names.empty() ? "" : " and ") + file.string();
  return "If that process is gone for certain, remove " + names + ".";
}

FRUGAL_INLINE void require_same_file(std::filesystem::path const& path, FileId const& held) {
  auto const now = FileId::of(path);
  if (now == held) return;
  if (!now && errno != ENOENT && errno != ENOTDIR) throw io_error("lstat", path, errno);
  throw LockError(
      {.what = "this run has lost its run directory",
       .where = path.string(),
       .why =
           now ? "the lock file is not the one that was locked: the folder was renamed or replaced"
               : "the lock file is gone: the folder was renamed or removed",
       .fix = "Start again with the right folder; nothing was written to this one, or deleted in "
              "it, since."});
}

FRUGAL_INLINE void OwnerFile::require_dead(std::filesystem::path const& path,
                                           std::filesystem::path const& lock) {
  auto const owner = read_owner(path);
  if (owner && owner->life() == LockOwner::Life::dead) return;
  bool const both = owner && read_owner(lock) == owner;
  throw lock_refusal(lock, owner, both ? removal_hint({path, lock}) : removal_hint({path}));
}

FRUGAL_INLINE OwnerFile::OwnerFile(std::filesystem::path const& lock)
    : lock_(lock), path_(path_of(lock)) {
  auto mine = lock;
  mine += "." + host_name() + "." + std::to_string(::getpid());
  try {
    write_small_file(mine, LockOwner::here().text());
    auto const id = FileId::of(mine);
    if (!id) throw io_error("lstat", mine, errno);
    id_ = *id;
    // link() is atomic also over networks, where O_EXCL was not always. Over a network it may
    // also return EEXIST after its own success, if the reply to the first attempt was lost.
    if (::link(mine.c_str(), path_.c_str()) != 0) {
      int const code = errno;
      if (FileId::of(path_) != id) {
        if (code != EEXIST) throw io_error("link", path_, code);
        replace_dead_owner(mine);
      }
    }
  } catch (...) {
    ::unlink(mine.c_str());
    throw;
  }
  ::unlink(mine.c_str());
}

FRUGAL_INLINE void OwnerFile::replace_dead_owner(std::filesystem::path const& mine) {
  auto door = lock_;
  door += ".takeover";
  require_dead(path_, lock_);
  if (::mkdir(door.c_str(), 0777) != 0) {
    throw lock_refusal(lock_, std::nullopt,
                       "If nobody else is starting right now, remove " + door.string() + ".");
  }
  try {
    require_dead(path_, lock_);  // still the dead one's?
    if (::rename(mine.c_str(), path_.c_str()) != 0) throw io_error("rename", path_, errno);
  } catch (...) {
    ::rmdir(door.c_str());
    throw;
  }
  ::rmdir(door.c_str());
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE RunLock::RunLock(std::filesystem::path path, LockBy by) : path_(std::move(path)) {
  open();
  try {
    take(by);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

FRUGAL_INLINE RunLock::~RunLock() {
  // A failure here cannot be handled; a non-empty file only costs the next owner a note.
  if (::ftruncate(descriptor_, 0) != 0) errno = 0;
  owner_file_.reset();
  ::close(descriptor_);
}

FRUGAL_INLINE void RunLock::require_held() const {
  detail::require_same_file(path_, id_);
  if (owner_file_) owner_file_->require_held();
}

FRUGAL_INLINE void RunLock::open() {
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

FRUGAL_INLINE void RunLock::take(LockBy by) {
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

FRUGAL_INLINE void RunLock::require_gone(LockOwner const& owner, bool by_kernel) const {
  auto const life = owner.life();
  bool gone = life == LockOwner::Life::dead;
  // A kernel lock proves that an owner on another machine is gone; a file does not.
  gone = gone || (life == LockOwner::Life::unknown && by_kernel);
  // A program that restarted itself with exec() lost the kernel's lock and kept its process id.
  gone = gone || (owner.pid == ::getpid() && by_kernel);
  if (!gone) throw detail::lock_refusal(path_, owner, detail::removal_hint({path_}));
}

FRUGAL_INLINE bool RunLock::take_kernel_lock(LockBy by) {
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

FRUGAL_INLINE void RunLock::write(std::string const& text) {
  // Only for other processes' error text; on a full disk the lock holds all the same.
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    errno = 0;
  }
}

}  // namespace frugal
