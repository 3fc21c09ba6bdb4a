// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>

#include <xxhash.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace frugal {

/// XXH3 of a sample's bytes, 128 bits: equal for equal bytes. Of a million million different
/// samples two have the same hash with a probability of 10^-15. It detects copies, not forgeries.
struct ContentHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(ContentHash const&, ContentHash const&) = default;
};

inline ContentHash content_hash(std::string_view bytes) {
  XXH128_hash_t const hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

/// 32 lower-case hexadecimal digits, as `xxh128sum` prints them.
inline std::string hex_of(ContentHash const& hash) { return hex_of(hash.high) + hex_of(hash.low); }

}  // namespace frugal
