// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/data/little_endian.hpp>

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A cache is made of segments. Each is written by one process, and consists of two files that only
// grow: NAME.data has the samples, each at a multiple of 64 bytes, and NAME.index a header of 64
// bytes and an entry of 48 bytes for every sample, which is written after the sample.
//
//   header  "FRGLCAX\n", version (uint32), 0 (uint32), hash of the key, capacity, 24 bytes of 0,
//           XXH3 of these 56 bytes
//   entry   sample, offset in the data, bytes, bytes of the input, XXH3 of the bytes, XXH3 of these
//           40 bytes
//
// A crash leaves part of an entry at most. Each process reads the index itself, passes over entries
// without a valid hash, and computes them again.
namespace frugal::detail {

inline constexpr std::string_view cache_magic = "FRGLCAX\n";
inline constexpr std::uint32_t cache_version = 1;
inline constexpr std::uint64_t cache_header_bytes = 64;
inline constexpr std::uint64_t cache_entry_bytes = 48;
inline constexpr std::uint64_t cache_alignment = 64;
inline constexpr std::uint64_t unknown_bytes = ~std::uint64_t{0};

/// Where a sample is in a segment.
struct CacheEntry {
  std::uint64_t sample = 0;
  std::uint64_t offset = 0;                    ///< in the data
  std::uint64_t bytes = 0;                     ///< in the data
  std::uint64_t source_bytes = unknown_bytes;  ///< of the input that it was computed from
  std::uint64_t hash = 0;                      ///< of its bytes

  friend bool operator==(CacheEntry const&, CacheEntry const&) = default;

  std::vector<std::byte> file_bytes() const;
};

/// What the entries of a segment must fit.
struct CacheSegmentHeader {
  std::uint64_t key = 0;       ///< hash of the cache's key
  std::uint64_t capacity = 0;  ///< bytes of data, at most

  std::vector<std::byte> file_bytes() const;

  /// Nothing if the bytes are no header of this version.
  static std::optional<CacheSegmentHeader> parse(std::span<std::byte const> bytes);
};

/// The whole entries at the beginning of `bytes` that have their hash, belong to one of `samples`
/// samples and lie in the first `data_bytes` bytes of data.
std::vector<CacheEntry> cache_entries(std::span<std::byte const> bytes, std::uint64_t samples,
                                      std::uint64_t data_bytes);

/// Reads a segment, while its writer may still append to it.
///
/// Its files stay open only while another process may write to them: a cache of a terabyte has a
/// thousand segments, and a process often has no more descriptors than that.
class CacheSegment {
 public:
  /// `index` is the path of NAME.index. Null if it is not, or not yet, a segment of this key.
  /// `own`: this process writes it, and knows its entries. StoreError if it cannot be opened or
  /// mapped.
  static std::unique_ptr<CacheSegment> open(std::filesystem::path const& index, std::uint64_t key,
                                            bool own = false);
  CacheSegment(CacheSegment const&) = delete;
  CacheSegment& operator=(CacheSegment const&) = delete;
  ~CacheSegment() { ::munmap(const_cast<std::byte*>(mapped_), capacity_); }

  /// The entries that came since the last call.
  std::vector<CacheEntry> news(std::uint64_t samples);

  /// An entry that news() gave, or that this process wrote itself.
  std::span<std::byte const> bytes(CacheEntry const& entry) const {
    return {mapped_ + entry.offset, entry.bytes};
  }

  /// On disk, as far as known.
  std::uint64_t disk_bytes() const { return read_ + data_bytes_; }

 private:
  CacheSegment(std::byte const* mapped, std::uint64_t capacity)
      : mapped_(mapped), capacity_(capacity) {}

  /// Whether the writer has ended. Where the file system has no locks, it may live for ever.
  static bool is_released(File const& index);

  std::optional<std::pair<File, File>> files_;  ///< index and data, while there may be news
  std::byte const* mapped_;
  std::uint64_t capacity_;
  std::uint64_t read_ = cache_header_bytes;  ///< bytes of the index
  std::uint64_t data_bytes_ = 0;
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
  void add(CacheEntry& entry, std::span<std::byte const> bytes);

  std::filesystem::path index_path() const { return with(".index"); }

 private:
  static std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + cache_alignment - 1) / cache_alignment * cache_alignment;
  }

  static std::string new_name();
  std::filesystem::path with(char const* extension) const;

  std::uint64_t capacity_;
  std::filesystem::path base_;
  File data_;
  File index_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> padded_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/cache/cache_segment.ipp>
#endif
