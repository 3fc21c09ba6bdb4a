// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/little_endian.hpp>

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

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/cache/cache_index.ipp>
#endif
