// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/cache_segment.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cerrno>

namespace frugal::detail {

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

}  // namespace frugal::detail
