// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/cache_index.hpp>
#include <frugal/store/file.hpp>
#include <frugal/store/io_error.hpp>

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Reads a segment, while its writer may still append to it.
class CacheSegment {
 public:
  /// `index` is the path of NAME.index. Null if it is not, or not yet, a segment of this key.
  /// StoreError if it cannot be opened or mapped.
  static std::unique_ptr<CacheSegment> open(std::filesystem::path const& index, std::uint64_t key) {
    File file = File::open(index);
    std::vector<std::byte> bytes(cache_header_bytes);
    bytes.resize(file.read(bytes));
    auto const header = CacheSegmentHeader::parse(bytes);
    if (!header || header->key != key || header->capacity == 0) return nullptr;
    File data = File::open(std::filesystem::path(index).replace_extension(".data"));
    // Past the end of the file for as long as it grows; only bytes that are there are read.
    void* const mapped =
        ::mmap(nullptr, header->capacity, PROT_READ, MAP_SHARED, data.descriptor(), 0);
    if (mapped == MAP_FAILED) throw io_error("mmap", data.path(), errno);
    return std::unique_ptr<CacheSegment>(new CacheSegment(
        std::move(file), std::move(data), static_cast<std::byte const*>(mapped), header->capacity));
  }
  CacheSegment(CacheSegment const&) = delete;
  CacheSegment& operator=(CacheSegment const&) = delete;
  ~CacheSegment() { ::munmap(const_cast<std::byte*>(mapped_), capacity_); }

  /// The entries that came since the last call.
  std::vector<CacheEntry> news(std::uint64_t samples) {
    if (final_) return {};
    // Asked first: what a writer adds while it lets go is still read below.
    final_ = is_released();
    std::uint64_t const size = index_.size();
    if (size < read_ + cache_entry_bytes) return {};
    std::vector<std::byte> bytes((size - read_) / cache_entry_bytes * cache_entry_bytes);
    bytes.resize(index_.read(bytes) / cache_entry_bytes * cache_entry_bytes);
    read_ += bytes.size();
    data_bytes_ = std::min(data_.size(), capacity_);
    return cache_entries(bytes, samples, data_bytes_);
  }

  /// An entry that news() gave, or that this process wrote itself.
  std::span<std::byte const> bytes(CacheEntry const& entry) const {
    return {mapped_ + entry.offset, entry.bytes};
  }

  /// On disk, as far as known.
  std::uint64_t disk_bytes() const { return read_ + data_bytes_; }
  std::filesystem::path const& path() const { return index_.path(); }

 private:
  CacheSegment(File index, File data, std::byte const* mapped, std::uint64_t capacity)
      : index_(std::move(index)), data_(std::move(data)), mapped_(mapped), capacity_(capacity) {}

  /// Whether the writer has ended. Where the file system has no locks, it may live for ever.
  bool is_released() const {
    if (::flock(index_.descriptor(), LOCK_SH | LOCK_NB) != 0) return false;
    ::flock(index_.descriptor(), LOCK_UN);
    return true;
  }

  File index_;
  File data_;
  std::byte const* mapped_;
  std::uint64_t capacity_;
  std::uint64_t read_ = cache_header_bytes;  ///< bytes of the index
  std::uint64_t data_bytes_ = 0;
  bool final_ = false;
};

/// Writes a segment of its own, which no other process writes to.
class CacheSegmentWriter {
 public:
  /// StoreError if the files cannot be made.
  CacheSegmentWriter(std::filesystem::path const& folder, CacheSegmentHeader header)
      : capacity_(header.capacity),
        base_(folder / new_name()),
        // The data first: who finds an index finds its data.
        data_(File::create(with(".data"))),
        index_(File::create(with(".index"))) {
    (void)::flock(index_.descriptor(), LOCK_EX | LOCK_NB);  // says that it is being written
    index_.write(header.file_bytes());
  }

  bool has_room(std::uint64_t bytes) const { return bytes <= capacity_ - offset_; }

  /// Bytes on disk that a sample of this size takes.
  static std::uint64_t disk_bytes(std::uint64_t bytes) { return padded(bytes) + cache_entry_bytes; }

  /// Appends the bytes and then their entry; sets the entry's offset, bytes and hash.
  void add(CacheEntry& entry, std::span<std::byte const> bytes) {
    entry.offset = offset_;
    entry.bytes = bytes.size();
    entry.hash = Hash::of(bytes);
    padded_.assign(bytes.begin(), bytes.end());
    padded_.resize(std::min(padded(bytes.size()), capacity_ - offset_));
    data_.write(padded_);
    offset_ += padded_.size();
    index_.write(entry.file_bytes());
  }

  std::filesystem::path index_path() const { return with(".index"); }

 private:
  static std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + cache_alignment - 1) / cache_alignment * cache_alignment;
  }

  static std::string new_name() {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) {
      throw io_error("getrandom", "a new segment", errno);
    }
    return "segment-" + hex_of(random);
  }
  std::filesystem::path with(char const* extension) const {
    auto path = base_;
    return path += extension;
  }

  std::uint64_t capacity_;
  std::filesystem::path base_;
  File data_;
  File index_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> padded_;
};

}  // namespace frugal::detail
