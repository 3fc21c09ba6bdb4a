// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/store/block_buffer.hpp>
#include <frugal/store/io_error.hpp>

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

/// An open file. Every call that can fail is looked at and throws a StoreError that names the file,
/// the call and the reason.
///
/// A write or an fsync that failed is final: the kernel may already have dropped the pages it could
/// not write, and a second fsync would then succeed over a file that has holes (Rebello et al.,
/// "Can Applications Recover from fsync Failures?", USENIX ATC 2020). Such a file throws the same
/// error at every later call.
class File {
 public:
  /// A new file to write; it must not be there yet.
  static File create(std::filesystem::path path) {
    return File(std::move(path), O_WRONLY | O_CREAT | O_EXCL);
  }
  /// A file that is there, to read.
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

  /// Closes without looking at the result: who has written calls close() before.
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// Writes all of it at the end of what was written before. The disk begins with it at once, so
  /// that sync() has less to wait for; the end of a file with reserve() waits for sync().
  void write(std::span<std::byte const> bytes) {
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
  std::size_t read(std::span<std::byte> bytes) {
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

  /// Bytes that the file has now.
  std::uint64_t size() const {
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0) throw detail::io_error("fstat", path_, errno);
    return static_cast<std::uint64_t>(status.st_size);
  }

  /// Takes the disk space of a file that will have `bytes`, so that a full disk shows now and not
  /// after minutes of writing. File systems that cannot do that are let off.
  ///
  /// Large files then go to the disk past the page cache: it takes them at its own pace instead of
  /// the kernel's, no second copy of them is made, and what the run reads stays in the cache.
  void reserve(std::uint64_t bytes) {
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

  /// Waits until the disk has all that was written. An interrupted call has said nothing about the
  /// data, so it is made again; any other failure is final.
  void sync() {
    require_sound();
    put_the_rest();
    int result = 0;
    do {
      result = ::fsync(descriptor_);
    } while (result != 0 && errno == EINTR);
    if (result != 0) fail("fsync", errno);
  }

  /// Some file systems report a failed write only here.
  void close() {
    if (!failure_) put_the_rest();
    int const descriptor = std::exchange(descriptor_, -1);
    int const result = descriptor < 0 ? 0 : ::close(descriptor);
    int const code = errno;
    require_sound();
    // Linux has closed it also when it says EINTR, and a second close could hit another's file.
    if (result != 0 && code != EINTR) fail("close", code);
  }

  int descriptor() const noexcept { return descriptor_; }
  std::filesystem::path const& path() const noexcept { return path_; }

 private:
  static constexpr std::uint64_t worth_blocks = 2 * detail::BlockBuffer::capacity;

  void put(std::span<std::byte const> bytes) {
    while (!bytes.empty()) {
      ssize_t const wrote = ::write(descriptor_, bytes.data(), bytes.size());
      if (wrote < 0 && errno == EINTR) continue;
      // It was a wish: a file system may take the flag, and then no such write.
      if (wrote < 0 && errno == EINVAL && direct_ && set_direct(false)) continue;
      // POSIX has no meaning for 0 here; without this it would be tried for ever.
      if (wrote <= 0) fail("write", wrote == 0 ? EIO : errno);
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
      written_ += wrote;
      // After half a sector the rest is aligned no more.
      if (direct_ && static_cast<std::size_t>(wrote) % detail::BlockBuffer::sector != 0) {
        set_direct(false);
      }
    }
  }

  void put_blocks() {
    put(blocks_->filled());
    blocks_->clear();
    if (!direct_) begin_write_back();
  }

  /// What is left is no whole number of sectors.
  void put_the_rest() {
    if (!blocks_) return;
    if (direct_) set_direct(false);
    put_blocks();
    blocks_.reset();
  }

  /// Past the page cache, or through it. False where the file system cannot.
  bool set_direct(bool wanted) {
    int const flags = ::fcntl(descriptor_, F_GETFL);
    int const changed = wanted ? flags | O_DIRECT : flags & ~O_DIRECT;
    if (flags < 0 || ::fcntl(descriptor_, F_SETFL, changed) != 0) return false;
    direct_ = wanted;
    return true;
  }

  /// Left alone, the kernel waits for seconds, or for a share of all memory, before it writes.
  void begin_write_back() noexcept {
    constexpr off_t step = off_t{8} << 20;
    if (written_ - handed_over_ < step) return;
    // No error is lost with the result: sync() reports what the disk could not take.
    (void)::sync_file_range(descriptor_, handed_over_, written_ - handed_over_,
                            SYNC_FILE_RANGE_WRITE);
    handed_over_ = written_;
  }

  File(std::filesystem::path path, int flags) : path_(std::move(path)) {
    do {
      descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) throw detail::io_error("open", path_, errno);
  }

  [[noreturn]] void fail(char const* call, int code) {
    failure_ = detail::io_error(call, path_, code);
    throw *failure_;
  }

  void require_sound() const {
    if (failure_) throw *failure_;
  }

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::optional<IoError> failure_;
  std::unique_ptr<detail::BlockBuffer> blocks_;  ///< of a large file, until it is synced
  bool direct_ = false;
  off_t written_ = 0;      ///< bytes
  off_t handed_over_ = 0;  ///< bytes that the disk was told to begin with
};

}  // namespace frugal
