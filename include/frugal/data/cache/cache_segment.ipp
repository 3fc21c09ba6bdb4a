// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/cache_segment.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cerrno>

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

}  // namespace frugal::detail
