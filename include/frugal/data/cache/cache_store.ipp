// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/cache_store.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::byte> CacheEntry::file_bytes() const {
  std::vector<std::byte> out;
  for (std::uint64_t const value : {sample, offset, bytes, source_bytes, hash}) {
    append_le(out, value);
  }
  append_le(out, Hash::of(out));
  return out;
}

FRUGAL_INLINE std::vector<std::byte> CacheSegmentHeader::file_bytes() const {
  std::vector<std::byte> out;
  append_text(out, cache_magic);
  append_le(out, cache_version);
  append_le(out, std::uint32_t{0});
  append_le(out, key);
  append_le(out, capacity);
  out.resize(cache_header_bytes - 8);
  append_le(out, Hash::of(out));
  return out;
}

FRUGAL_INLINE std::optional<CacheSegmentHeader> CacheSegmentHeader::parse(
    std::span<std::byte const> bytes) {
  if (bytes.size() < cache_header_bytes) return std::nullopt;
  std::string_view const magic(reinterpret_cast<char const*>(bytes.data()), cache_magic.size());
  if (magic != cache_magic || load_le<std::uint32_t>(bytes, 8) != cache_version ||
      load_le<std::uint64_t>(bytes, 56) != Hash::of(bytes.first(56))) {
    return std::nullopt;
  }
  return CacheSegmentHeader{.key = load_le<std::uint64_t>(bytes, 16),
                            .capacity = load_le<std::uint64_t>(bytes, 24)};
}

FRUGAL_INLINE std::vector<CacheEntry> cache_entries(std::span<std::byte const> bytes,
                                                    std::uint64_t samples,
                                                    std::uint64_t data_bytes) {
  std::vector<CacheEntry> entries;
  for (; bytes.size() >= cache_entry_bytes; bytes = bytes.subspan(cache_entry_bytes)) {
    if (load_le<std::uint64_t>(bytes, 40) != Hash::of(bytes.first(40))) continue;
    CacheEntry const entry{.sample = load_le<std::uint64_t>(bytes, 0),
                           .offset = load_le<std::uint64_t>(bytes, 8),
                           .bytes = load_le<std::uint64_t>(bytes, 16),
                           .source_bytes = load_le<std::uint64_t>(bytes, 24),
                           .hash = load_le<std::uint64_t>(bytes, 32)};
    bool const inside = entry.bytes <= data_bytes && entry.offset <= data_bytes - entry.bytes;
    if (inside && entry.sample < samples) entries.push_back(entry);
  }
  return entries;
}

FRUGAL_INLINE std::unique_ptr<CacheSegment> CacheSegment::open(std::filesystem::path const& index,
                                                               std::uint64_t key, bool own) {
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
  auto segment = std::unique_ptr<CacheSegment>(
      new CacheSegment(static_cast<std::byte const*>(mapped), header->capacity));
  if (!own) segment->files_.emplace(std::move(file), std::move(data));
  return segment;
}

FRUGAL_INLINE std::vector<CacheEntry> CacheSegment::news(std::uint64_t samples) {
  if (!files_) return {};
  auto& [index, data] = *files_;
  // Asked first: what a writer adds while it lets go is still read below.
  bool const is_final = is_released(index);
  std::vector<CacheEntry> entries;
  if (std::uint64_t const size = index.size(); size >= read_ + cache_entry_bytes) {
    std::vector<std::byte> bytes((size - read_) / cache_entry_bytes * cache_entry_bytes);
    bytes.resize(index.read(bytes) / cache_entry_bytes * cache_entry_bytes);
    read_ += bytes.size();
    data_bytes_ = std::min(data.size(), capacity_);
    entries = cache_entries(bytes, samples, data_bytes_);
  }
  if (is_final) files_.reset();
  return entries;
}

FRUGAL_INLINE bool CacheSegment::is_released(File const& index) {
  if (::flock(index.descriptor(), LOCK_SH | LOCK_NB) != 0) return false;
  ::flock(index.descriptor(), LOCK_UN);
  return true;
}

FRUGAL_INLINE void CacheSegmentWriter::add(CacheEntry& entry, std::span<std::byte const> bytes) {
  entry.offset = offset_;
  entry.bytes = bytes.size();
  entry.hash = Hash::of(bytes);
  padded_.assign(bytes.begin(), bytes.end());
  padded_.resize(std::min(padded(bytes.size()), capacity_ - offset_));
  data_.write(padded_);
  offset_ += padded_.size();
  index_.write(entry.file_bytes());
}

FRUGAL_INLINE std::string CacheSegmentWriter::new_name() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    throw io_error("getrandom", "a new segment", errno);
  }
  return "segment-" + hex_of(random);
}

FRUGAL_INLINE std::filesystem::path CacheSegmentWriter::with(char const* extension) const {
  auto path = base_;
  return path += extension;
}

FRUGAL_INLINE std::optional<std::span<std::byte const>> CacheStore::find(
    std::uint64_t sample) const {
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

FRUGAL_INLINE bool CacheStore::put(std::uint64_t sample, std::span<std::byte const> bytes,
                                   std::uint64_t source_bytes) {
  if (stopped_.load(std::memory_order_relaxed)) return false;
  std::lock_guard const lock(mutex_);
  // What others wrote while this sample was computed counts, too.
  if (limit_ != std::numeric_limits<std::uint64_t>::max()) refresh_locked();
  if (find(sample)) return true;
  if (stopped_.load(std::memory_order_relaxed)) return false;
  bool const has_room = writer_ && writer_process_ == ::getpid() && writer_->has_room(bytes.size());
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

FRUGAL_INLINE void CacheStore::refresh() {
  std::lock_guard const lock(mutex_);
  refresh_locked();
}

FRUGAL_INLINE std::string CacheStore::why() const {
  std::lock_guard const lock(mutex_);
  return why_;
}

FRUGAL_INLINE CacheTotals CacheStore::totals() const {
  std::lock_guard const lock(mutex_);
  CacheTotals totals = totals_;
  totals.disk_bytes = disk_bytes_locked();
  totals.damaged = damaged_.load(std::memory_order_relaxed);
  if (!source_known_) totals.source_bytes.reset();
  return totals;
}

FRUGAL_INLINE void CacheStore::require_key(std::string const& key) const {
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

FRUGAL_INLINE void CacheStore::refresh_locked() {
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

FRUGAL_INLINE void CacheStore::open_segments() {
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

FRUGAL_INLINE void CacheStore::new_segment(std::uint64_t bytes) {
  writer_.emplace(folder_, CacheSegmentHeader{.key = key_, .capacity = std::max(capacity_, bytes)});
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

FRUGAL_INLINE void CacheStore::insert(CacheSegment const& segment, CacheEntry const& entry,
                                      State state) {
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

FRUGAL_INLINE std::uint64_t CacheStore::disk_bytes_locked() const {
  std::uint64_t bytes = own_bytes_;
  for (CacheSegment const* const segment : others_) bytes += segment->disk_bytes();
  return bytes;
}

FRUGAL_INLINE bool CacheStore::stop(std::string why) {
  why_ = std::move(why);
  stopped_.store(true, std::memory_order_relaxed);
  return false;
}

}  // namespace frugal::detail
