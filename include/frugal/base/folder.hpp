// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/io_error.hpp>

#include <stdio.h>  // renameat2
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <vector>

namespace frugal {

/// Makes a folder's entries durable: everything created, renamed or removed in it. File systems
/// without fsync of folders return EINVAL, which is ignored.
void sync_folder(std::filesystem::path const& path);

/// Renames, replacing the target if the system allows it. Durable after sync_folder of the parent.
inline void rename_path(std::filesystem::path const& from, std::filesystem::path const& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw detail::io_error("rename", to, errno);
}

/// Renames to a name that must be free. Returns false, and does nothing, if the name is taken.
/// Never replaces anything, unless the file system lacks renameat2 and another process takes the
/// name between the check and the rename.
bool rename_to_free(std::filesystem::path const& from, std::filesystem::path const& to);

/// Exchanges two names atomically. Returns false, and does nothing, if the file system cannot.
bool exchange_paths(std::filesystem::path const& one, std::filesystem::path const& other);

/// Creates one folder; it must not exist.
inline void create_folder(std::filesystem::path const& path) {
  if (::mkdir(path.c_str(), 0777) != 0) throw detail::io_error("mkdir", path, errno);
}

namespace detail {

void create_folders_to(std::filesystem::path const& path, std::filesystem::path const& wanted);

}  // namespace detail

/// Creates a folder and its parents, durably. Existing ones are unchanged.
inline void create_folders(std::filesystem::path const& path) {
  detail::create_folders_to(path, path);
}

/// The entries of a folder, sorted by name; empty if the folder does not exist. StoreError if it
/// cannot be read: that must not look like an empty folder.
std::vector<std::filesystem::path> entries_of(std::filesystem::path const& folder);

/// Removes a file, or a folder with its contents. A missing path is ignored.
void remove_tree(std::filesystem::path const& path);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/base/folder.ipp>
#endif
