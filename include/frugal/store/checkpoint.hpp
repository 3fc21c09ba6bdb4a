// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/file.hpp>
#include <frugal/store/folder.hpp>
#include <frugal/store/hash.hpp>
#include <frugal/store/io_error.hpp>
#include <frugal/store/manifest.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
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

/// A folder among the checkpoints that is none any more.
struct Damage {
  std::filesystem::path folder;
  std::string why;
};

/// What lies in a folder of checkpoints.
struct CheckpointList {
  std::vector<SavedCheckpoint> whole;  ///< with a manifest that reads, newest first
  std::vector<Damage> damaged;         ///< by name
};

namespace detail {

inline constexpr std::string_view gold_name = "gold";
/// Folders that are being made or removed; whoever holds the lock may remove those it finds.
inline constexpr std::string_view temporary_prefix = ".tmp-";

inline FormatError damaged(std::filesystem::path const& file, std::string why) {
  return FormatError({.what = "a file of a checkpoint is damaged",
                      .where = file.string(),
                      .why = std::move(why),
                      .mend = "Use another checkpoint, or restore this one from a copy."});
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
  return std::pair(one.serial, one.step) > std::pair(other.serial, other.step);
}

inline constexpr std::size_t read_size = std::size_t{1} << 20;

}  // namespace detail

/// Reads the manifest of a folder. StoreError if it cannot be read, FormatError if it is damaged.
inline SavedCheckpoint read_checkpoint(std::filesystem::path const& folder) {
  auto const path = folder / Manifest::file_name;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw detail::io_error("stat", path, errno);
  if (!S_ISREG(status.st_mode)) throw detail::damaged(path, "it is no file");
  File file = File::open(path);
  if (file.size() > Manifest::largest) {
    throw detail::damaged(file.path(), "no manifest has " + std::to_string(file.size()) + " bytes");
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  text.resize(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
  std::error_code ignored;
  return {.folder = folder,
          .manifest = Manifest::parse(text, file.path()),
          .gold = std::filesystem::exists(folder / detail::gold_name, ignored)};
}

/// Reads every file of a checkpoint and compares it with the manifest. FormatError names the first
/// that differs, IoError the first that cannot be read. Other files in the folder are nobody's
/// business.
inline void verify(SavedCheckpoint const& checkpoint) {
  auto const buffer = std::make_unique<std::byte[]>(detail::read_size);
  for (FileEntry const& entry : checkpoint.manifest.files) {
    auto const path = checkpoint.folder / entry.name;
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) throw detail::io_error("stat", path, errno);
    // Opening a pipe would wait for ever.
    if (!S_ISREG(status.st_mode)) throw detail::damaged(path, "it is no file");
    File file = File::open(path);
    if (std::uint64_t const size = file.size(); size != entry.size) {
      throw detail::damaged(path, "it has " + std::to_string(size) +
                                      " bytes, and the manifest says " +
                                      std::to_string(entry.size));
    }
    Hash hash;
    while (std::size_t const got = file.read({buffer.get(), detail::read_size})) {
      hash.update({buffer.get(), got});
    }
    if (hash.digest() != entry.hash) {
      throw detail::damaged(path, "its hash is " + hex_of(hash.digest()) +
                                      ", and the manifest says " + hex_of(entry.hash));
    }
  }
}

/// Reads the manifests of all checkpoints in a folder, whatever their folders are called. Folders
/// that begin with a dot are not looked at. What is no damage is thrown: to take an older
/// checkpoint because the newest is from a newer library (NewerFormatError), or may not be read by
/// this user, would lose training in silence.
inline CheckpointList list_checkpoints(std::filesystem::path const& folder) {
  CheckpointList list;
  std::error_code ignored;
  for (auto const& path : entries_of(folder)) {
    if (path.filename().string().starts_with('.')) continue;
    // Where the look fails, reading says why.
    auto const status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) continue;
    try {
      list.whole.push_back(read_checkpoint(path));
    } catch (StoreError const& error) {
      if (!detail::is_damage(error)) throw;
      // Retention of a trainer may have taken it between the look and the reading.
      if (std::filesystem::exists(path, ignored)) list.damaged.push_back({path, error.what()});
    }
  }
  std::sort(list.whole.begin(), list.whole.end(),
            [](SavedCheckpoint const& a, SavedCheckpoint const& b) {
              if (detail::newer(a.manifest, b.manifest)) return true;
              return !detail::newer(b.manifest, a.manifest) && a.folder < b.folder;
            });
  return list;
}

}  // namespace frugal
