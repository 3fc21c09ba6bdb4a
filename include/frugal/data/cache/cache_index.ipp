// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/cache_index.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/inline.hpp>

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

}  // namespace frugal::detail
