// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace frugal {

/// The orientation that an EXIF block (a TIFF header and its first directory) gives, 1 to 8. 1,
/// which is upright, if the block has none or is damaged: it is advice about an image, and no image
/// is lost over it.
/// Source  CIPA DC-008 (Exif 2.32), sections 4.5.2 and 4.6.4; TIFF 6.0, section 2.
inline int exif_orientation(std::span<std::byte const> block) {
  auto const at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(block[i]); };
  if (block.size() < 8) return 1;
  bool const little = at(0) == 'I' && at(1) == 'I';
  if (!little && !(at(0) == 'M' && at(1) == 'M')) return 1;
  auto const two = [&](std::size_t i) {
    return little ? at(i) | at(i + 1) << 8 : at(i) << 8 | at(i + 1);
  };
  auto const four = [&](std::size_t i) {
    return little ? two(i) | two(i + 2) << 16 : two(i) << 16 | two(i + 2);
  };
  if (two(2) != 42) return 1;
  std::size_t entry = four(4);
  if (entry > block.size() - 2) return 1;
  std::uint32_t const entries = two(entry);
  entry += 2;
  constexpr std::size_t width = 12;  // tag, type, count, value
  for (std::uint32_t i = 0; i < entries && block.size() - entry >= width; ++i, entry += width) {
    constexpr std::uint32_t orientation = 0x0112, short_integer = 3;
    if (two(entry) != orientation) continue;
    if (two(entry + 2) != short_integer || four(entry + 4) != 1) return 1;
    std::uint32_t const value = two(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace frugal
