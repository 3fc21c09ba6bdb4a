// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/io_error.hpp>

#include <frugal/inline.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE std::string fix_of(int code) {
  switch (code) {
    case ENOSPC:
      return "Make room on that disk, keep fewer checkpoints, or set a run directory on another "
             "disk.";
    case EDQUOT:
      return "Delete files or raise the quota of this user, which is used up; or set a run "
             "directory "
             "on another disk.";
    case EROFS:
      return "Set a run directory on a disk that can be written. A disk that became read-only by "
             "itself has errors: see the kernel's log.";
    case EACCES:
    case EPERM:
      return "Give this user write permission there (chown, chmod), or set another run directory.";
    case EIO:
      return "See the kernel's log, since the disk or its connection reports errors; and set a run "
             "directory on another disk.";
    case ESTALE:
      return "Check the mount, since the file server lost the file; then start again.";
    case ENOENT:
      return "Check the path, and whether something else removed the file or folder.";
    case ENOTDIR:
    case EEXIST:
      return "Check the path: a file is where a folder is needed, or the name is taken. Remove it, "
             "or "
             "set another run directory.";
    case EMFILE:
    case ENFILE:
      return "Raise the limit of open files (ulimit -n), or close some.";
    case EFBIG:
      return "Raise the limit of a file's size (ulimit -f), or set a run directory on another file "
             "system.";
    case ENAMETOOLONG:
      return "Set a run directory with a shorter path.";
    default:
      return "Check the disk and the permissions of the folder, then start again.";
  }
}

FRUGAL_INLINE std::string why_of(std::filesystem::path const& path, int code) {
  std::error_code ignored, followed;
  if (code == ELOOP && std::filesystem::is_symlink(path, ignored)) {
    // A link in a circle has the same code, also where links are followed.
    static_cast<void>(std::filesystem::status(path, followed));
    if (followed != std::errc::too_many_symbolic_link_levels) {
      return "it is a symbolic link, and such a one is followed only where a path is set";
    }
  }
  std::string why = std::generic_category().message(code);
  if (code != EACCES && code != EPERM) return why;
  std::string const permissions = permissions_text(path);
  return permissions.empty() ? why : why + "; " + permissions;
}

FRUGAL_INLINE IoError io_error(std::string_view call, std::filesystem::path const& path, int code) {
  return IoError({.what = "the call " + std::string(call) + " failed",
                  .where = path.string(),
                  .why = why_of(path, code),
                  .fix = fix_of(code)},
                 code);
}

FRUGAL_INLINE std::filesystem::path first_missing(std::filesystem::path const& path) {
  std::filesystem::path at;
  std::error_code failure;
  for (std::filesystem::path const& part : path) {
    at /= part;
    if (!std::filesystem::is_directory(at, failure)) break;
  }
  return at;
}

FRUGAL_INLINE IoError folder_error(std::filesystem::path const& wanted,
                                   std::filesystem::path const& failed, int code) {
  std::error_code ignored;
  bool const is_file = (code == EEXIST || code == ENOTDIR) &&
                       std::filesystem::exists(nearest_existing(failed), ignored) &&
                       !std::filesystem::is_directory(nearest_existing(failed), ignored);
  return IoError({.what = "the folder " + failed.string() + " cannot be created",
                  .where = wanted == failed ? "mkdir" : "mkdir, on the way to " + wanted.string(),
                  .why = (is_file ? "'" + nearest_existing(failed).string() + "' is not a folder"
                                  : why_of(failed, code)),
                  .fix = fix_of(code)},
                 code);
}

FRUGAL_INLINE std::filesystem::path nearest_existing(std::filesystem::path path) {
  std::error_code failure;
  std::filesystem::path at = std::filesystem::absolute(path, failure).lexically_normal();
  if (failure) return path;
  if (!at.has_filename()) at = at.parent_path();  // a slash at the end
  struct stat status{};
  while (::stat(at.c_str(), &status) != 0 && at != at.parent_path()) at = at.parent_path();
  return at;
}

FRUGAL_INLINE std::string permissions_text(std::filesystem::path const& path) {
  std::filesystem::path const found = nearest_existing(path);
  struct stat status{};
  if (::stat(found.c_str(), &status) != 0) return {};
  std::array<char, 120> text{};
  std::snprintf(text.data(), text.size(),
                " has owner %u, group %u and mode %o, and this process runs as user %u",
                static_cast<unsigned>(status.st_uid), static_cast<unsigned>(status.st_gid),
                static_cast<unsigned>(status.st_mode) & 07777U, static_cast<unsigned>(::geteuid()));
  return "'" + found.string() + "'" + text.data();
}

}  // namespace frugal::detail
