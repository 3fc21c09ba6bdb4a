// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE std::span<std::byte const> BlockBuffer::take(std::span<std::byte const> bytes) {
  std::size_t const count = std::min(bytes.size(), capacity - size_);
  if (count != 0) std::memcpy(bytes_ + size_, bytes.data(), count);
  size_ += count;
  return bytes.subspan(count);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void File::write(std::span<std::byte const> bytes) {
  require_sound();
  if (!blocks_) {
    put(bytes);
    return begin_write_back();
  }
  while (!bytes.empty()) {
    bytes = blocks_->take(bytes);
    if (blocks_->full()) put_blocks();
  }
}

FRUGAL_INLINE std::size_t File::read(std::span<std::byte> bytes) {
  require_sound();
  std::size_t got = 0;
  while (got < bytes.size()) {
    ssize_t const read = ::read(descriptor_, bytes.data() + got, bytes.size() - got);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) throw detail::io_error("read", path_, errno);
    if (read == 0) break;
    got += static_cast<std::size_t>(read);
  }
  return got;
}

FRUGAL_INLINE std::uint64_t File::size() const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) throw detail::io_error("fstat", path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

FRUGAL_INLINE void File::reserve(std::uint64_t bytes) {
  require_sound();
  if (bytes == 0 || bytes > std::uint64_t{std::numeric_limits<off_t>::max()}) return;
  int result = 0;
  do {
    result = ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO)) {
    fail("fallocate", errno);
  }
  if (bytes >= worth_blocks && !blocks_ && written_ == 0 && set_direct(true)) {
    blocks_ = std::make_unique<detail::BlockBuffer>();
  }
}

FRUGAL_INLINE void File::sync() {
  require_sound();
  put_the_rest();
  int result = 0;
  do {
    result = ::fsync(descriptor_);
  } while (result != 0 && errno == EINTR);
  if (result != 0) fail("fsync", errno);
}

FRUGAL_INLINE void File::close() {
  if (!failure_) put_the_rest();
  int const descriptor = std::exchange(descriptor_, -1);
  int const result = descriptor < 0 ? 0 : ::close(descriptor);
  int const code = errno;
  require_sound();
  // Linux closes the descriptor even on EINTR; a second close could hit another file's.
  if (result != 0 && code != EINTR) fail("close", code);
}

FRUGAL_INLINE void File::put(std::span<std::byte const> bytes) {
  while (!bytes.empty()) {
    ssize_t const wrote = ::write(descriptor_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    // O_DIRECT is optional: a file system may accept the flag and then refuse the write.
    if (wrote < 0 && errno == EINVAL && direct_ && set_direct(false)) continue;
    // POSIX gives 0 no meaning here; without this the loop would never end.
    if (wrote <= 0) fail("write", wrote == 0 ? EIO : errno);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    written_ += wrote;
    // After a partial sector the rest is unaligned.
    if (direct_ && static_cast<std::size_t>(wrote) % detail::BlockBuffer::sector != 0) {
      set_direct(false);
    }
  }
}

FRUGAL_INLINE void File::put_blocks() {
  put(blocks_->filled());
  blocks_->clear();
  if (!direct_) begin_write_back();
}

FRUGAL_INLINE void File::put_the_rest() {
  if (!blocks_) return;
  if (direct_) set_direct(false);
  put_blocks();
  blocks_.reset();
}

FRUGAL_INLINE bool File::set_direct(bool wanted) {
  int const flags = ::fcntl(descriptor_, F_GETFL);
  int const changed = wanted ? flags | O_DIRECT : flags & ~O_DIRECT;
  if (flags < 0 || ::fcntl(descriptor_, F_SETFL, changed) != 0) return false;
  direct_ = wanted;
  return true;
}

FRUGAL_INLINE void File::begin_write_back() noexcept {
  constexpr off_t step = off_t{8} << 20;
  if (written_ - handed_over_ < step) return;
  // Ignoring the result loses no error: sync() reports what the disk could not take.
  (void)::sync_file_range(descriptor_, handed_over_, written_ - handed_over_,
                          SYNC_FILE_RANGE_WRITE);
  handed_over_ = written_;
}

FRUGAL_INLINE File::File(std::filesystem::path path, int flags) : path_(std::move(path)) {
  do {
    descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw detail::io_error("open", path_, errno);
}

FRUGAL_INLINE void File::fail(char const* call, int code) {
  failure_ = detail::io_error(call, path_, code);
  throw *failure_;
}

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

namespace frugal::detail {

FRUGAL_INLINE void write_whole_file(std::filesystem::path const& path, std::string_view text,
                                    Durable durable) {
  std::filesystem::path written = path;
  written += ".new";
  std::error_code ignored;
  std::filesystem::remove(written, ignored);  // of a process that was killed
  try {
    File file = File::create(written);
    file.write(std::as_bytes(std::span(text)));
    if (durable == Durable::yes) file.sync();
    file.close();
    rename_path(written, path);
  } catch (...) {
    std::filesystem::remove(written, ignored);
    throw;
  }
}

FRUGAL_INLINE std::string read_whole_file(std::filesystem::path const& path) {
  MappedFile const file(path);
  return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace frugal::detail
