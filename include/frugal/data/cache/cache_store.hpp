// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/data/cache/cache_folder.hpp>
#include <frugal/data/cache/cache_segment.hpp>

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
#include <vector>

namespace frugal::detail {

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
