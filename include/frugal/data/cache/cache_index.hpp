// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
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

  FRUGAL_INLINE std::vector<std::byte> file_bytes() const {
    std::vector<std::byte> out;
    for (std::uint64_t const value : {sample, offset, bytes, source_bytes, hash}) {
      append_le(out, value);
    }
    append_le(out, Hash::of(out));
    return out;
  }
};

/// What the entries of a segment must fit.
struct CacheSegmentHeader {
  std::uint64_t key = 0;       ///< hash of the cache's key
  std::uint64_t capacity = 0;  ///< bytes of data, at most

  FRUGAL_INLINE std::vector<std::byte> file_bytes() const {
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

  /// Nothing if the bytes are no header of this version.
  FRUGAL_INLINE static std::optional<CacheSegmentHeader> parse(std::span<std::byte const> bytes) {
    if (bytes.size() < cache_header_bytes) return std::nullopt;
    std::string_view const magic(reinterpret_cast<char const*>(bytes.data()), cache_magic.size());
    if (magic != cache_magic || load_le<std::uint32_t>(bytes, 8) != cache_version ||
        load_le<std::uint64_t>(bytes, 56) != Hash::of(bytes.first(56))) {
      return std::nullopt;
    }
    return CacheSegmentHeader{.key = load_le<std::uint64_t>(bytes, 16),
                              .capacity = load_le<std::uint64_t>(bytes, 24)};
  }
};

/// The whole entries at the beginning of `bytes` that have their hash, belong to one of `samples`
/// samples and lie in the first `data_bytes` bytes of data.
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
