// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
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
std::string fix_of(int code);

/// Whether an errno says that there is no such file, or that it is none. All others say that it
/// cannot be read now: too many open files, no permission, a disk or a network that fails. Nothing
/// is known about its content then.
constexpr bool no_such_file(int code) {
  return code == ENOENT || code == ENOTDIR || code == EISDIR || code == ELOOP ||
         code == ENAMETOOLONG;
}

/// The text of an errno, with the owner and the mode of what refuses where that is the reason.
std::string why_of(std::filesystem::path const& path, int code);

/// The error of a call that failed with errno `code`.
IoError io_error(std::string_view call, std::filesystem::path const& path, int code);

/// The first folder on the way to a path that does not exist; the path itself if all do.
std::filesystem::path first_missing(std::filesystem::path const& path);

/// The error of a folder that is wanted and cannot be made, or is none: `failed` is the folder, of
/// those that lead to it, at which that failed.
IoError folder_error(std::filesystem::path const& wanted, std::filesystem::path const& failed,
                     int code);

}  // namespace frugal::detail

// Details of a permission error: the file or folder that refuses, its owner, and the caller.
namespace frugal::detail {

/// The path, or the closest folder above it that exists and can be seen.
std::filesystem::path nearest_existing(std::filesystem::path path);

/// "'/data' has owner 0, group 0 and mode 755, and this process runs as user 1000". Numbers, since
/// asking for names may wait for a server.
std::string permissions_text(std::filesystem::path const& path);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/io_error.ipp>
#endif
