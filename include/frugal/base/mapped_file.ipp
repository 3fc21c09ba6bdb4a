// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/mapped_file.hpp>

#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

namespace frugal {

FRUGAL_INLINE MappedFile::MappedFile(std::filesystem::path const& path, Access access) {
  // Without O_NONBLOCK, opening a pipe waits for its writer; regular files are unaffected.
  int const file = open(path);
  struct stat about{};
  if (::fstat(file, &about) != 0) fail(file, path, "fstat");
  if (!S_ISREG(about.st_mode)) {
    ::close(file);
    throw StoreError({.what = "the file cannot be read",
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

FRUGAL_INLINE void MappedFile::release(std::span<std::byte const> bytes) noexcept {
  auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto const begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  auto const end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  // Advice only: a private mapping that is never written to loses nothing.
  if (!bytes.empty()) {
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

FRUGAL_INLINE int MappedFile::open(std::filesystem::path const& path) {
  int file = -1;
  do {
    file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (file < 0 && errno == EINTR);
  if (file < 0) fail(file, path, "open");
  return file;
}

FRUGAL_INLINE void MappedFile::fail(int file, std::filesystem::path const& path, char const* call) {
  int const code = errno;
  if (file >= 0) ::close(file);
  throw detail::io_error(call, path, code);
}

}  // namespace frugal
