// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/signal_free_thread.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE FormatError damaged(std::filesystem::path const& file, std::string why) {
  return FormatError({.what = "a file of a checkpoint is damaged",
                      .where = file.string(),
                      .why = std::move(why),
                      .fix = "Use another checkpoint, or restore this one from a copy."});
}

FRUGAL_INLINE bool is_damage(StoreError const& error) {
  if (auto const* call = dynamic_cast<IoError const*>(&error)) {
    return call->code == EIO || call->code == ENOENT || call->code == ENOTDIR ||
           call->code == EISDIR || call->code == ELOOP;
  }
  return dynamic_cast<FormatError const*>(&error) != nullptr &&
         dynamic_cast<NewerFormatError const*>(&error) == nullptr;
}

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

}  // namespace frugal::detail

namespace frugal {

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
