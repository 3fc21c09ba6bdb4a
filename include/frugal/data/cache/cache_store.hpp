// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/data/cache/cache_folder.hpp>
#include <frugal/data/little_endian.hpp>

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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

/// What a cache holds.
struct CacheTotals {
  std::uint64_t cached = 0;                   ///< samples
  std::optional<std::uint64_t> source_bytes;  ///< of their inputs; nothing if one is not known
  std::uint64_t bytes = 0;                    ///< of them
  std::uint64_t disk_bytes = 0;               ///< of all segments
  std::uint64_t damaged = 0;                  ///< entries that did not have their hash when read
};

/// Samples as bytes, on disk, for one key: FOLDER/<hash of the key>/. Several threads and several
/// processes may read and write it at the same time: each process appends to segments of its own,
/// and reads those of all. Nothing is ever changed in place.
///
/// Memory  8 bytes a sample, and about 80 for each that is cached.
class CacheStore {
 public:
  static constexpr std::uint64_t segment_bytes = std::uint64_t{1} << 30;

  /// DataError if the folder has another key of the same hash.
  CacheStore(std::filesystem::path const& folder, std::string const& key, std::uint64_t samples,
             std::uint64_t bytes_limit, std::uint64_t capacity = segment_bytes)
      : key_(Hash::of(std::as_bytes(std::span(key)))),
        folder_(folder / hex_of(key_)),
        samples_(samples),
        limit_(bytes_limit),
        capacity_(capacity),
        lock_(CacheFolderLock::shared(folder_)),
        slots_(samples) {
    require_key(key);
    static_cast<void>(entries_of(folder_));  // StoreError if it cannot be read
    refresh();
  }

  /// The bytes of a sample; nothing if they are not there, or are damaged. They stay as long as
  /// this object does.
  std::optional<std::span<std::byte const>> find(std::uint64_t sample) const;

  /// Keeps the bytes of a sample. False if the limit does not allow it, or a write failed: then
  /// nothing more is kept, and why() says why.
  bool put(std::uint64_t sample, std::span<std::byte const> bytes, std::uint64_t source_bytes);

  /// Takes in what other processes have written since. What cannot be read now (too many open
  /// files, a server that is away) is as if it was not there.
  void refresh();

  /// False once put() has given up.
  bool keeps() const { return !stopped_.load(std::memory_order_relaxed); }
  /// Why put() gave up.
  std::string why() const;

  CacheTotals totals() const;
  /// Where the segments are.
  std::filesystem::path const& folder() const noexcept { return folder_; }

 private:
  enum class State : unsigned char { unknown, sound, damaged };

  struct Record {
    Record(CacheSegment const* segment_, CacheEntry const& entry_, Record* older_, State state_)
        : segment(segment_), entry(entry_), older(older_), state(state_) {}

    CacheSegment const* segment;
    CacheEntry entry;
    Record* older;  ///< of the same sample: kept twice by two processes, or again after damage
    std::atomic<State> state;
  };

  /// The text of the key is in a file, so that two keys of one hash are distinguished.
  void require_key(std::string const& key) const;

  void refresh_locked();

  void open_segments();

  void new_segment(std::uint64_t bytes);

  void insert(CacheSegment const& segment, CacheEntry const& entry, State state);

  std::uint64_t disk_bytes_locked() const;

  bool stop(std::string why);

  std::uint64_t key_;
  std::filesystem::path folder_;
  std::uint64_t samples_;
  std::uint64_t limit_;
  std::uint64_t capacity_;
  CacheFolderLock lock_;
  mutable std::mutex mutex_;                            ///< for all but slots_ and the atomics
  std::deque<std::unique_ptr<CacheSegment>> segments_;  ///< own ones too
  std::vector<CacheSegment*> others_;
  CacheSegment const* own_ = nullptr;  ///< what writer_ writes
  std::set<std::filesystem::path> known_;
  std::filesystem::file_time_type seen_ = std::filesystem::file_time_type::min();
  std::optional<CacheSegmentWriter> writer_;
  pid_t writer_process_ = 0;  ///< a forked process has the writer's files, and makes its own
  std::deque<Record> records_;
  std::vector<std::atomic<Record*>> slots_;  ///< per sample
  CacheTotals totals_;
  bool source_known_ = true;
  bool unfinished_ = false;  ///< some segment has no header yet
  std::uint64_t own_bytes_ = 0;
  std::string why_;
  std::atomic<bool> stopped_{false};
  mutable std::atomic<std::uint64_t> damaged_{0};
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/cache/cache_store.ipp>
#endif
