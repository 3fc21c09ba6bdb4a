// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/block_buffer.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace frugal {

/// An open file. Every failed call throws a StoreError that names the file, the call and the
/// reason.
///
/// A write or an fsync that failed is final: the kernel may already have dropped the pages it could
/// not write, and a second fsync would then succeed over a file that has holes (Rebello et al.,
/// "Can Applications Recover from fsync Failures?", USENIX ATC 2020). Such a file throws the same
/// error at every later call.
class File {
 public:
  /// Creates a file for writing; it must not exist.
  static File create(std::filesystem::path path) {
    return File(std::move(path), O_WRONLY | O_CREAT | O_EXCL);
  }
  /// Opens an existing file for reading.
  static File open(std::filesystem::path path) { return File(std::move(path), O_RDONLY); }

  File(File&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        failure_(std::move(other.failure_)),
        blocks_(std::move(other.blocks_)),
        direct_(other.direct_),
        written_(other.written_),
        handed_over_(other.handed_over_) {}
  File& operator=(File&&) = delete;

  /// Closes and ignores the result: writers call close() first.
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// Appends all bytes. Write-back starts at once, so that sync() has less to wait for; the tail of
  /// a file with reserve() waits for sync().
  FRUGAL_INLINE void write(std::span<std::byte const> bytes) {
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

  /// Reads up to bytes.size(); less only at the end of the file.
  FRUGAL_INLINE std::size_t read(std::span<std::byte> bytes) {
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

  /// Current size of the file in bytes.
  FRUGAL_INLINE std::uint64_t size() const {
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0) throw detail::io_error("fstat", path_, errno);
    return static_cast<std::uint64_t>(status.st_size);
  }

  /// Reserves disk space for `bytes`, so that a full disk shows now and not after minutes of
  /// writing. Does nothing on file systems without support.
  ///
  /// Large files are then written past the page cache (O_DIRECT). The disk takes them at its own
  /// pace, no second copy is made, and the data that the run reads stays cached.
  FRUGAL_INLINE void reserve(std::uint64_t bytes) {
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

  /// Waits until everything written is on disk. EINTR says nothing about the data, so the call is
  /// retried; any other failure is final.
  FRUGAL_INLINE void sync() {
    require_sound();
    put_the_rest();
    int result = 0;
    do {
      result = ::fsync(descriptor_);
    } while (result != 0 && errno == EINTR);
    if (result != 0) fail("fsync", errno);
  }

  /// Some file systems report a failed write only here.
  FRUGAL_INLINE void close() {
    if (!failure_) put_the_rest();
    int const descriptor = std::exchange(descriptor_, -1);
    int const result = descriptor < 0 ? 0 : ::close(descriptor);
    int const code = errno;
    require_sound();
    // Linux closes the descriptor even on EINTR; a second close could hit another file's.
    if (result != 0 && code != EINTR) fail("close", code);
  }

  int descriptor() const noexcept { return descriptor_; }
  std::filesystem::path const& path() const noexcept { return path_; }

 private:
  static constexpr std::uint64_t worth_blocks = 2 * detail::BlockBuffer::capacity;

  FRUGAL_INLINE void put(std::span<std::byte const> bytes) {
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

  FRUGAL_INLINE void put_blocks() {
    put(blocks_->filled());
    blocks_->clear();
    if (!direct_) begin_write_back();
  }

  /// Writes the remainder, which is not a whole number of sectors.
  FRUGAL_INLINE void put_the_rest() {
    if (!blocks_) return;
    if (direct_) set_direct(false);
    put_blocks();
    blocks_.reset();
  }

  /// Switches O_DIRECT on or off. False if the file system refuses.
  FRUGAL_INLINE bool set_direct(bool wanted) {
    int const flags = ::fcntl(descriptor_, F_GETFL);
    int const changed = wanted ? flags | O_DIRECT : flags & ~O_DIRECT;
    if (flags < 0 || ::fcntl(descriptor_, F_SETFL, changed) != 0) return false;
    direct_ = wanted;
    return true;
  }

  /// By default the kernel waits for seconds, or for a share of all memory, before it writes back.
  FRUGAL_INLINE void begin_write_back() noexcept {
    constexpr off_t step = off_t{8} << 20;
    if (written_ - handed_over_ < step) return;
    // Ignoring the result loses no error: sync() reports what the disk could not take.
    (void)::sync_file_range(descriptor_, handed_over_, written_ - handed_over_,
                            SYNC_FILE_RANGE_WRITE);
    handed_over_ = written_;
  }

  FRUGAL_INLINE File(std::filesystem::path path, int flags) : path_(std::move(path)) {
    do {
      descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) throw detail::io_error("open", path_, errno);
  }

  [[noreturn]] FRUGAL_INLINE void fail(char const* call, int code) {
    failure_ = detail::io_error(call, path_, code);
    throw *failure_;
  }

  void require_sound() const {
    if (failure_) throw *failure_;
  }

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::optional<IoError> failure_;
  std::unique_ptr<detail::BlockBuffer> blocks_;  ///< of a large file, until sync()
  bool direct_ = false;
  off_t written_ = 0;      ///< bytes
  off_t handed_over_ = 0;  ///< bytes whose write-back has started
};

}  // namespace frugal
