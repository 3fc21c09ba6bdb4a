// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/file.hpp>
#include <frugal/store/hash.hpp>
#include <frugal/store/io_error.hpp>
#include <frugal/store/manifest.hpp>
#include <frugal/store/signal_free_thread.hpp>

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

/// A committed checkpoint: its folder, and what its manifest says. That its files are still what
/// they were, verify() says.
struct SavedCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
  bool gold = false;  ///< a file named `gold` lies in the folder: never deleted, never moved

  std::uint64_t step() const noexcept { return manifest.step; }
};

namespace detail {

inline constexpr std::string_view gold_name = "gold";
/// Folders that are being made or removed; whoever holds the lock may remove those it finds.
inline constexpr std::string_view temporary_prefix = ".tmp-";

inline FormatError damaged(std::filesystem::path const& file, std::string why) {
  return FormatError({.what = "a file of a checkpoint is damaged",
                      .where = file.string(),
                      .why = std::move(why),
                      .fix = "Use another checkpoint, or restore this one from a copy."});
}

/// Whether an error says something about the checkpoint. Too many open files, or a right that is
/// missing, say something about this process: to take an older checkpoint then would lose training
/// that is all there.
inline bool is_damage(StoreError const& error) {
  if (auto const* call = dynamic_cast<IoError const*>(&error)) {
    return call->code == EIO || call->code == ENOENT || call->code == ENOTDIR ||
           call->code == EISDIR || call->code == ELOOP;
  }
  return dynamic_cast<FormatError const*>(&error) != nullptr &&
         dynamic_cast<NewerFormatError const*>(&error) == nullptr;
}

/// The later save decides, and not the higher step: who went back to an earlier state and goes on
/// from there has left the higher steps behind. The clock has no say.
inline bool newer(Manifest const& one, Manifest const& other) {
  return one.serial != other.serial ? one.serial > other.serial : one.step > other.step;
}

inline constexpr std::size_t read_size = std::size_t{1} << 20;

/// Opens a file of a checkpoint. FormatError if it is no file, or of another size than it should.
inline File open_file_of(SavedCheckpoint const& checkpoint, FileEntry const& entry) {
  auto const path = checkpoint.folder / entry.name;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw io_error("stat", path, errno);
  // Opening a pipe would wait for ever.
  if (!S_ISREG(status.st_mode)) throw damaged(path, "it is no file");
  File file = File::open(path);
  if (std::uint64_t const size = file.size(); size != entry.size) {
    throw damaged(path, "it has " + std::to_string(size) + " bytes, and the manifest says " +
                            std::to_string(entry.size));
  }
  return file;
}

inline void verify_file(SavedCheckpoint const& checkpoint, FileEntry const& entry) {
  File file = open_file_of(checkpoint, entry);
  // Not cleared, and no larger than the file: a clear of 1 MiB was nine tenths of a small check.
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

/// Files from this size on are read by a thread each: weights and optimizer side by side.
inline constexpr std::uint64_t worth_a_thread = std::uint64_t{64} << 20;

}  // namespace detail

/// Reads every file of a checkpoint and compares it with the manifest. FormatError names the first
/// that differs, IoError the first that cannot be read. Other files in the folder are nobody's
/// business.
inline void verify(SavedCheckpoint const& checkpoint) {
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
      // There is no thread to be had.
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
