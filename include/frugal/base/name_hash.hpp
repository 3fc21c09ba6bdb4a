// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace frugal::detail {

/// The hash of a name, at compile time if wanted: FNV-1a, 64 bits (Fowler, Noll, Vo).
constexpr std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char const c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace frugal::detail
