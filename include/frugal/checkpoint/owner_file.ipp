// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/owner_file.hpp>

#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

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
