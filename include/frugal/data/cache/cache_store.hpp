// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/data/cache/cache_folder.hpp>
#include <frugal/data/cache/cache_index.hpp>
#include <frugal/data/cache/cache_segment.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
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
  FRUGAL_INLINE std::optional<std::span<std::byte const>> find(std::uint64_t sample) const {
    Record* record = slots_[sample].load(std::memory_order_acquire);
    for (; record != nullptr; record = record->older) {
      auto const bytes = record->segment->bytes(record->entry);
      auto const state = record->state.load(std::memory_order_relaxed);
      if (state == State::sound) return bytes;
      if (state == State::damaged) continue;
      bool const good = Hash::of(bytes) == record->entry.hash;
      auto const before =
          record->state.exchange(good ? State::sound : State::damaged, std::memory_order_relaxed);
      if (good) return bytes;
      if (before != State::damaged) damaged_.fetch_add(1, std::memory_order_relaxed);
    }
    return std::nullopt;
  }

  /// Keeps the bytes of a sample. False if the limit does not allow it, or a write failed: then
  /// nothing more is kept, and why() says why.
  FRUGAL_INLINE bool put(std::uint64_t sample, std::span<std::byte const> bytes,
                         std::uint64_t source_bytes) {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    std::lock_guard const lock(mutex_);
    // What others wrote while this sample was computed counts, too.
    if (limit_ != std::numeric_limits<std::uint64_t>::max()) refresh_locked();
    if (find(sample)) return true;
    if (stopped_.load(std::memory_order_relaxed)) return false;
    bool const has_room =
        writer_ && writer_process_ == ::getpid() && writer_->has_room(bytes.size());
    std::uint64_t const more =
        CacheSegmentWriter::disk_bytes(bytes.size()) + (has_room ? 0 : cache_header_bytes);
    if (limit_ - std::min(limit_, disk_bytes_locked()) < more) {
      return stop("the limit of " + std::to_string(limit_) + " bytes is reached");
    }
    try {
      if (!has_room) new_segment(bytes.size());
      CacheEntry entry{.sample = sample, .source_bytes = source_bytes};
      writer_->add(entry, bytes);
      own_bytes_ += more;
      insert(*own_, entry, State::sound);
    } catch (StoreError const& error) {
      return stop(error.fault().what + " (" + error.fault().where + "): " + error.fault().why);
    }
    return true;
  }

  /// Takes in what other processes have written since. What cannot be read now (too many open
  /// files, a server that is away) is as if it was not there.
  FRUGAL_INLINE void refresh() {
    std::lock_guard const lock(mutex_);
    refresh_locked();
  }

  /// False once put() has given up.
  bool keeps() const { return !stopped_.load(std::memory_order_relaxed); }
  /// Why put() gave up.
  FRUGAL_INLINE std::string why() const {
    std::lock_guard const lock(mutex_);
    return why_;
  }

  FRUGAL_INLINE CacheTotals totals() const {
    std::lock_guard const lock(mutex_);
    CacheTotals totals = totals_;
    totals.disk_bytes = disk_bytes_locked();
    totals.damaged = damaged_.load(std::memory_order_relaxed);
    if (!source_known_) totals.source_bytes.reset();
    return totals;
  }
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
  FRUGAL_INLINE void require_key(std::string const& key) const {
    auto const path = folder_ / "key.txt";
    std::error_code ignored;  // what cannot be looked at cannot be opened, either
    if (!std::filesystem::exists(path, ignored)) {
      try {
        NewFile file(path);
        file.write(std::as_bytes(std::span(key)));
        file.publish();
        return;
      } catch (StoreError const&) {
        if (!std::filesystem::exists(path, ignored)) throw;  // else another process was first
      }
    }
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (text.str() == key) return;
    throw DataError({.what = "the cache belongs to something else",
                     .where = path.string(),
                     .why = "its key is not the one of this set and transform, although both have "
                            "the hash " +
                            hex_of(key_),
                     .fix = "Remove that folder, or set another CacheSettings::folder."});
  }

  FRUGAL_INLINE void refresh_locked() {
    std::error_code failure;
    auto const changed = std::filesystem::last_write_time(folder_, failure);
    if (failure || changed != seen_ || unfinished_) open_segments();
    // A segment that is made within the clock tick of the last change leaves the folder's time as
    // it is. So a time is only trusted once it is well past; two seconds is the coarsest tick.
    using Clock = std::filesystem::file_time_type::clock;
    bool const settled = !failure && changed + std::chrono::seconds(2) < Clock::now();
    seen_ = settled ? changed : std::filesystem::file_time_type::min();
    for (auto const& segment : others_) {
      std::vector<CacheEntry> news;
      try {
        news = segment->news(samples_);
      } catch (StoreError const&) {
        continue;
      }
      for (CacheEntry const& entry : news) insert(*segment, entry, State::unknown);
    }
  }

  FRUGAL_INLINE void open_segments() {
    unfinished_ = false;
    std::vector<std::filesystem::path> paths;
    try {
      paths = entries_of(folder_);
    } catch (StoreError const&) {
      unfinished_ = true;
    }
    for (auto const& path : paths) {
      if (path.extension() != ".index" || known_.contains(path)) continue;
      try {
        // Asked first: a header that is complete by now is read below.
        if (std::filesystem::file_size(path) < cache_header_bytes) {
          unfinished_ = true;  // it is being written
          continue;
        }
        if (auto segment = CacheSegment::open(path, key_)) {
          others_.push_back(segment.get());
          segments_.push_back(std::move(segment));
        }
      } catch (StoreError const&) {
        // Without its data, or beyond this process's limits: as if it was not there.
      } catch (std::filesystem::filesystem_error const&) {
      }
      known_.insert(path);
    }
  }

  FRUGAL_INLINE void new_segment(std::uint64_t bytes) {
    writer_.emplace(folder_,
                    CacheSegmentHeader{.key = key_, .capacity = std::max(capacity_, bytes)});
    writer_process_ = ::getpid();
    known_.insert(writer_->index_path());
    auto segment = CacheSegment::open(writer_->index_path(), key_, /*own=*/true);
    if (!segment) {
      throw StoreError({.what = "a new segment cannot be read",
                        .where = writer_->index_path().string(),
                        .why = "it is not what was written",
                        .fix = "Check the disk."});
    }
    own_ = segment.get();
    segments_.push_back(std::move(segment));
  }

  FRUGAL_INLINE void insert(CacheSegment const& segment, CacheEntry const& entry, State state) {
    auto& slot = slots_[entry.sample];
    Record* const older = slot.load(std::memory_order_relaxed);
    records_.emplace_back(&segment, entry, older, state);
    slot.store(&records_.back(), std::memory_order_release);
    if (older != nullptr) return;
    ++totals_.cached;
    totals_.bytes += entry.bytes;
    source_known_ = source_known_ && entry.source_bytes != unknown_bytes;
    totals_.source_bytes = totals_.source_bytes.value_or(0) + entry.source_bytes;
  }

  FRUGAL_INLINE std::uint64_t disk_bytes_locked() const {
    std::uint64_t bytes = own_bytes_;
    for (CacheSegment const* const segment : others_) bytes += segment->disk_bytes();
    return bytes;
  }

  FRUGAL_INLINE bool stop(std::string why) {
    why_ = std::move(why);
    stopped_.store(true, std::memory_order_relaxed);
    return false;
  }

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
