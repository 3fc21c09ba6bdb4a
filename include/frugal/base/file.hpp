// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/io_error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace frugal::detail {

/// Collects written bytes into blocks fit for O_DIRECT: aligned in memory, in whole sectors.
class BlockBuffer {
 public:
  static constexpr std::size_t sector = 4096;  ///< no disk or file system needs more
  static constexpr std::size_t capacity = std::size_t{4} << 20;

  BlockBuffer() : bytes_(static_cast<std::byte*>(::operator new(capacity, alignment))) {}
  BlockBuffer(BlockBuffer const&) = delete;
  BlockBuffer& operator=(BlockBuffer const&) = delete;
  ~BlockBuffer() { ::operator delete(bytes_, alignment); }

  /// Takes as many bytes as fit, and returns the rest.
  std::span<std::byte const> take(std::span<std::byte const> bytes);

  bool full() const noexcept { return size_ == capacity; }
  std::span<std::byte const> filled() const noexcept { return {bytes_, size_}; }
  void clear() noexcept { size_ = 0; }

 private:
  static constexpr std::align_val_t alignment{sector};

  std::byte* bytes_;
  std::size_t size_ = 0;
};

}  // namespace frugal::detail

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
  void write(std::span<std::byte const> bytes);

  /// Reads up to bytes.size(); less only at the end of the file.
  std::size_t read(std::span<std::byte> bytes);

  /// Current size of the file in bytes.
  std::uint64_t size() const;

  /// Reserves disk space for `bytes`, so that a full disk shows now and not after minutes of
  /// writing. Does nothing on file systems without support.
  ///
  /// Large files are then written past the page cache (O_DIRECT). The disk takes them at its own
  /// pace, no second copy is made, and the data that the run reads stays cached.
  void reserve(std::uint64_t bytes);

  /// Waits until everything written is on disk. EINTR says nothing about the data, so the call is
  /// retried; any other failure is final.
  void sync();

  /// Some file systems report a failed write only here.
  void close();

  int descriptor() const noexcept { return descriptor_; }
  std::filesystem::path const& path() const noexcept { return path_; }

 private:
  static constexpr std::uint64_t worth_blocks = 2 * detail::BlockBuffer::capacity;

  void put(std::span<std::byte const> bytes);

  void put_blocks();

  /// Writes the remainder, which is not a whole number of sectors.
  void put_the_rest();

  /// Switches O_DIRECT on or off. False if the file system refuses.
  bool set_direct(bool wanted);

  /// By default the kernel waits for seconds, or for a share of all memory, before it writes back.
  void begin_write_back() noexcept;

  File(std::filesystem::path path, int flags);

  [[noreturn]] void fail(char const* call, int code);

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

namespace frugal::detail {

/// Whether a file survives a crash of the machine: an fsync, which may take a second on a busy
/// disk.
enum class Durable : bool { no, yes };

/// Writes or replaces a file: a reader sees the old text or the new one, also after a failure,
/// which leaves nothing next to it. StoreError.
void write_whole_file(std::filesystem::path const& path, std::string_view text, Durable durable);

std::string read_whole_file(std::filesystem::path const& path);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/file.ipp>
#endif
