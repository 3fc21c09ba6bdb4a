// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/permissions.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal {

/// A failed system call; `code` is its errno.
struct IoError : StoreError {
  IoError(Fault fault, int code_) : StoreError(std::move(fault)), code(code_) {}

  int code;
};

}  // namespace frugal

namespace frugal::detail {

/// The fix for a file-system errno, as a sentence.
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

/// Whether an errno says that there is no such file, or that it is none. All others say that it
/// cannot be read now: too many open files, no permission, a disk or a network that fails. Nothing
/// is known about its content then.
constexpr bool no_such_file(int code) {
  return code == ENOENT || code == ENOTDIR || code == EISDIR || code == ELOOP ||
         code == ENAMETOOLONG;
}

/// The text of an errno, with the owner and the mode of what refuses where that is the reason.
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

/// The error of a call that failed with errno `code`.
FRUGAL_INLINE IoError io_error(std::string_view call, std::filesystem::path const& path, int code) {
  return IoError({.what = "the call " + std::string(call) + " failed",
                  .where = path.string(),
                  .why = why_of(path, code),
                  .fix = fix_of(code)},
                 code);
}

/// The first folder on the way to a path that does not exist; the path itself if all do.
FRUGAL_INLINE std::filesystem::path first_missing(std::filesystem::path const& path) {
  std::filesystem::path at;
  std::error_code failure;
  for (std::filesystem::path const& part : path) {
    at /= part;
    if (!std::filesystem::is_directory(at, failure)) break;
  }
  return at;
}

/// The error of a folder that is wanted and cannot be made, or is none: `failed` is the folder, of
/// those that lead to it, at which that failed.
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

}  // namespace frugal::detail
