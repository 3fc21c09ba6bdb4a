// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/base/signal_free_thread.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace frugal {

/// A committed checkpoint: its folder and its manifest. verify() checks the files against it.
struct SavedCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
  bool gold = false;  ///< a file named `gold` lies in the folder: never deleted, never moved

  std::uint64_t step() const noexcept { return manifest.step; }
};

namespace detail {

inline constexpr std::string_view gold_name = "gold";
/// Prefix of folders that are being made or removed. The holder of the lock may remove any it
/// finds.
inline constexpr std::string_view temporary_prefix = ".tmp-";

FRUGAL_INLINE FormatError damaged(std::filesystem::path const& file, std::string why) {
  return FormatError({.what = "a file of a checkpoint is damaged",
                      .where = file.string(),
                      .why = std::move(why),
                      .fix = "Use another checkpoint, or restore this one from a copy."});
}

/// Whether an error means that the checkpoint is damaged. Too many open files, or a missing
/// permission, are faults of this process: falling back to an older checkpoint would then lose good
/// training.
FRUGAL_INLINE bool is_damage(StoreError const& error) {
  if (auto const* call = dynamic_cast<IoError const*>(&error)) {
    return call->code == EIO || call->code == ENOENT || call->code == ENOTDIR ||
           call->code == EISDIR || call->code == ELOOP;
  }
  return dynamic_cast<FormatError const*>(&error) != nullptr &&
         dynamic_cast<NewerFormatError const*>(&error) == nullptr;
}

/// Whether `one` is the newer save, by serial rather than by step: after a rollback the later save
/// may have the lower step. The clock does not matter.
inline bool newer(Manifest const& one, Manifest const& other) {
  return one.serial != other.serial ? one.serial > other.serial : one.step > other.step;
}

inline constexpr std::size_t read_size = std::size_t{1} << 20;

/// Opens a file of a checkpoint. FormatError if it is not a regular file or has the wrong size.
FRUGAL_INLINE File open_file_of(SavedCheckpoint const& checkpoint, FileEntry const& entry) {
  auto const path = checkpoint.folder / entry.name;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw io_error("stat", path, errno);
  // Opening a pipe would block for ever.
  if (!S_ISREG(status.st_mode)) throw damaged(path, "it is not a file");
  File file = File::open(path);
  if (std::uint64_t const size = file.size(); size != entry.size) {
    throw damaged(path, "it has " + std::to_string(size) + " bytes, and the manifest says " +
                            std::to_string(entry.size));
  }
  return file;
}

FRUGAL_INLINE void verify_file(SavedCheckpoint const& checkpoint, FileEntry const& entry) {
  File file = open_file_of(checkpoint, entry);
  // Uninitialised, and no larger than the file: clearing 1 MiB took nine tenths of a small check.
  std::size_t const size = std::min<std::size_t>(read_size, entry.size + 1);
  auto const buffer = std::make_unique_for_overwrite<std::byte[]>(size);
  Hash hash;
  while (std::size_t const got = file.read({buffer.get(), size})) {
    hash.update({buffer.get(), got});
  }
  if (hash.digest() != entry.hash) {
    throw damaged(file.path(), "its hash is " + hex_of(hash.digest()) + ", and the manifest says " +
                                   hex_of(entry.hash));
  }
}

/// Each file of at least this size is read by its own thread, so that weights and optimizer state
/// are read in parallel.
inline constexpr std::uint64_t worth_a_thread = std::uint64_t{64} << 20;

}  // namespace detail

/// Reads every file of a checkpoint and compares it with the manifest. FormatError names the first
/// file that differs, IoError the first that cannot be read. Ignores other files in the folder.
FRUGAL_INLINE void verify(SavedCheckpoint const& checkpoint) {
  std::vector<std::exception_ptr> faults(checkpoint.manifest.files.size());
  auto const read = [&](std::size_t i) noexcept {
    try {
      detail::verify_file(checkpoint, checkpoint.manifest.files[i]);
    } catch (...) {
      faults[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(faults.size());
  std::vector<std::size_t> here;
  here.reserve(faults.size());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    try {
      if (checkpoint.manifest.files[i].size >= detail::worth_a_thread) {
        threads.push_back(detail::signal_free_thread([&read, i] { read(i); }));
        continue;
      }
    } catch (std::system_error const&) {
      // No thread available.
    }
    here.push_back(i);
  }
  for (std::size_t const i : here) read(i);
  for (std::thread& thread : threads) thread.join();
  for (std::exception_ptr const& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
}

}  // namespace frugal
