// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace frugal {

namespace detail {

std::string step_name(std::uint64_t step);

/// A unique name for a folder that is being made or removed; new in every call.
std::string temporary_name(std::string const& of);

/// For clean-up that may fail: the next start removes the rest.
void try_remove_tree(std::filesystem::path const& path) noexcept;

}  // namespace detail

/// Writes one checkpoint under a temporary name and publishes it atomically.
///
/// It fsyncs every file, then the manifest, then the folder; then it renames the folder and fsyncs
/// the parent. At any moment, and after any crash, readers see the whole checkpoint or none. A
/// writer destroyed without commit() removes everything that it wrote.
class CheckpointWriter {
 public:
  using Sink = Hashed<File>;

  /// `checkpoints` is an existing folder.
  CheckpointWriter(std::filesystem::path checkpoints, std::uint64_t step, std::uint64_t serial);
  CheckpointWriter(CheckpointWriter&& other) noexcept
      : checkpoints_(std::move(other.checkpoints_)),
        temporary_(std::exchange(other.temporary_, {})),
        name_(std::move(other.name_)),
        manifest_(std::move(other.manifest_)) {}
  CheckpointWriter& operator=(CheckpointWriter&&) = delete;
  ~CheckpointWriter() {
    if (!temporary_.empty()) detail::try_remove_tree(temporary_);
  }

  /// Writes one file: `fill(sink)` calls sink.write(std::span<std::byte const>) any number of
  /// times. `expected`, in bytes, reserves disk space first. On return the file is on disk.
  template <class Fill>
  void add(std::string name, Fill&& fill, std::uint64_t expected = 0) {
    require_open();
    require_free(name);
    manifest_.files.push_back(
        write(temporary_, std::move(name), std::forward<Fill>(fill), expected));
  }

  /// Where the files lie until commit(). Other processes may write files of their own there; adopt()
  /// makes them part of the checkpoint.
  std::filesystem::path const& folder() const { return temporary_; }
  /// Writes one file to such a folder.
  template <class Fill>
  static FileEntry write(std::filesystem::path const& folder, std::string name, Fill&& fill,
                         std::uint64_t expected) {
    File file = File::create(folder / name);
    file.reserve(expected);
    Sink sink(file);
    std::forward<Fill>(fill)(sink);
    file.sync();
    file.close();
    return {std::move(name), sink.size(), sink.digest()};
  }
  /// Takes a file that lies there, as its writer has described it, under another name. StoreError if it
  /// is not there, or has another size.
  void adopt(FileEntry entry, std::string const& name);

  /// Publishes the checkpoint. If this throws, the existing checkpoints are unchanged.
  ///
  /// An older save of the same step is replaced atomically. If that one is marked gold, or
  /// `replaces` is false, it stays, and the new one gets a numbered name.
  SavedCheckpoint commit(std::map<std::string, double> const& metrics = {}, bool replaces = true);

 private:
  void require_free(std::string const& name) const;

  std::filesystem::path publish(bool replaces);

  /// Takes back a checkpoint whose name may not survive a crash. It would look safe, and retention
  /// might delete older ones because of it.
  template <class WindowRetry>
  void sync_or(WindowRetry&& undo) {
    try {
      sync_folder(checkpoints_);
    } catch (StoreError const&) {
      try {
        undo();
      } catch (StoreError const&) {
        temporary_.clear();  // it is published whole; remove nothing from it
      }
      throw;
    }
  }

  static bool is_replaceable(std::filesystem::path const& folder);

  void require_open() const;

  std::filesystem::path checkpoints_;
  std::filesystem::path temporary_;  ///< empty after commit()
  std::string name_;
  Manifest manifest_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/commit.ipp>
#endif
