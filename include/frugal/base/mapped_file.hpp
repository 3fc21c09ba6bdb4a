// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace frugal {

/// Maps a whole file into memory, read-only, and advises the kernel how it will be read.
///
/// The bytes are those of the file that had the path when it was opened: renaming another file over
/// it, or removing it, changes nothing. Truncating the mapped file in place is not guarded against:
/// touching a page behind the new end raises SIGBUS.
///
/// Errors  StoreError naming the file and the call, if the file does not exist, is not readable, or
///         is not regular (folders, pipes, devices). Never blocks on one of these.
class MappedFile {
 public:
  /// How the bytes will be read.
  enum class Access {
    sequential,  ///< once, from the start to the end
    normal,      ///< in any order, perhaps again
  };

  /// No file, no bytes.
  MappedFile() = default;

  explicit MappedFile(std::filesystem::path const& path, Access access = Access::sequential);

  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    MappedFile moved(std::move(other));
    std::swap(data_, moved.data_);
    std::swap(size_, moved.size_);
    return *this;
  }
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  }

  /// Gives the memory of bytes of a mapped file back: they are read from the file again when they
  /// are next touched. Whoever reads a large file once keeps one part of it in memory that way.
  static void release(std::span<std::byte const> bytes) noexcept;

  /// The address is stable for the lifetime of this object, moves included.
  std::span<std::byte const> bytes() const noexcept { return {data_, size_}; }

 private:
  static int open(std::filesystem::path const& path);

  [[noreturn]] static void fail(int file, std::filesystem::path const& path, char const* call);

  std::byte const* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/base/mapped_file.ipp>
#endif
