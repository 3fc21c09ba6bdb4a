// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/cache_settings.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::string CacheReport::text() const {
  std::string text = std::to_string(cached) + " of " + std::to_string(samples) + " samples: ";
  if (bytes_before) text += size_text(*bytes_before) + " before the transform, ";
  return text + size_text(bytes_after) + (bytes_before ? " after it" : " after the transform");
}

FRUGAL_INLINE std::string CacheReport::size_text(std::uint64_t bytes) {
  char const* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes);
  int unit = 0;
  for (; size >= 1024 && unit < 6; ++unit) size /= 1024;
  return detail::fixed(size, unit == 0 ? 0 : 1) + " " + units[unit];
}

}  // namespace frugal
