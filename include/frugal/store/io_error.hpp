// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

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

/// What to do about a file-system errno, as a sentence.
inline std::string mend_of(int code) {
  switch (code) {
    case ENOSPC:
      return "Make room on that disk, keep fewer checkpoints, or give a run directory on another "
             "disk.";
    case EDQUOT:
      return "The quota of this user is used up: delete files, have it raised, or give a run "
             "directory on another disk.";
    case EROFS:
      return "Give a run directory on a disk that can be written. A disk that became read-only by "
             "itself has errors: see the kernel's log.";
    case EACCES:
    case EPERM:
      return "Give this user the right to it, or give another run directory.";
    case EIO:
      return "The disk, or the way to it, reports errors: see the kernel's log, and give a run "
             "directory on another disk.";
    case ESTALE:
      return "The file server lost the file: look at the mount, then start again.";
    case ENOENT:
    case ENOTDIR:
      return "Look at the path, and whether somebody else removed what was there.";
    case EMFILE:
    case ENFILE:
      return "Too many files are open: raise the limit (ulimit -n), or close some.";
    case EFBIG:
      return "Raise the limit of a file's size (ulimit -f), or give another file system.";
    case ENAMETOOLONG:
      return "Give a run directory with a shorter path.";
    default:
      return "Look at the disk and at the rights of the folder, then start again.";
  }
}

/// The error of a call that failed with errno `code`.
inline IoError io_error(std::string_view call, std::filesystem::path const& path, int code) {
  return IoError({.what = "the call " + std::string(call) + " failed",
                  .where = path.string(),
                  .why = std::generic_category().message(code),
                  .fix = mend_of(code)},
                 code);
}

}  // namespace frugal::detail
