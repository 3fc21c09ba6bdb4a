// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
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

  FRUGAL_INLINE explicit MappedFile(std::filesystem::path const& path,
                                    Access access = Access::sequential) {
    // Without O_NONBLOCK, opening a pipe waits for its writer; regular files are unaffected.
    int const file = open(path);
    struct stat about{};
    if (::fstat(file, &about) != 0) fail(file, path, "fstat");
    if (!S_ISREG(about.st_mode)) {
      ::close(file);
      throw StoreError(
          {.what = "the file cannot be read",
           .where = path.string(),
           .why = S_ISDIR(about.st_mode) ? "it is a folder" : "it is not a regular file",
           .fix = "Give the path of a file."});
    }
    size_ = static_cast<std::size_t>(about.st_size);
    // mmap refuses a length of 0, and an empty file is still a file.
    if (size_ != 0) {
      void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
      if (data == MAP_FAILED) fail(file, path, "mmap");
      data_ = static_cast<std::byte const*>(data);
      // Advice only: without it, reading is slower but correct.
      if (access == Access::sequential) (void)::madvise(data, size_, MADV_SEQUENTIAL);
    }
    ::close(file);
  }

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
  FRUGAL_INLINE static void release(std::span<std::byte const> bytes) noexcept {
    auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto const begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
    auto const end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
    // Advice only: a private mapping that is never written to loses nothing.
    if (!bytes.empty()) {
      (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
  }

  /// The address is stable for the lifetime of this object, moves included.
  std::span<std::byte const> bytes() const noexcept { return {data_, size_}; }

 private:
  FRUGAL_INLINE static int open(std::filesystem::path const& path) {
    int file = -1;
    do {
      file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (file < 0 && errno == EINTR);
    if (file < 0) fail(file, path, "open");
    return file;
  }

  [[noreturn]] FRUGAL_INLINE static void fail(int file, std::filesystem::path const& path,
                                              char const* call) {
    int const code = errno;
    if (file >= 0) ::close(file);
    throw detail::io_error(call, path, code);
  }

  std::byte const* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace frugal
