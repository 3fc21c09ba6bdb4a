// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// A decoded image in host memory: row by row, the channels of a pixel side by side (HWC).
struct RawImage {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;         ///< 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::uint32_t bits = 8;             ///< of a value: 8, or 16 in the machine's byte order
  std::vector<std::uint8_t> bytes{};  ///< height * width * channels * bits / 8

  friend bool operator==(RawImage const&, RawImage const&) = default;
};

/// Which channels a decoder gives.
enum class Channels {
  as_stored,  ///< those of the file: 1 to 4. A palette counts as RGB, CMYK too
  grey,       ///< 1: the luma of ITU-R BT.601
  rgb,        ///< 3: grey is repeated, alpha is left out
  rgba,       ///< 4: without alpha in the file it is opaque
  labels,     ///< 1, of PNG: numbers as they are stored, of a palette the index and not the color
};

/// What a decoder is asked for.
struct DecodeOptions {
  Channels channels = Channels::rgb;
  bool orient = true;           ///< turn the image as the EXIF orientation of the file says
  std::uint32_t at_least = 0;   ///< JPEG: decode at 1/2, 1/4 or 1/8 of the size where the shorter
                                ///< side stays at this many pixels or more; 0: at full size
  bool keep_16_bits = false;    ///< PNG of 16 bits: keep them instead of rounding to 8
  bool accept_damaged = false;  ///< JPEG: give what can be decoded of a damaged file
  bool upright_only = false;    ///< refuse a file whose EXIF orientation turns it
  std::uint64_t pixels = 100'000'000;  ///< most pixels that a file may claim to have
};

namespace detail {

[[noreturn]] inline void refuse_image(std::string what, std::string const& name, std::size_t byte,
                                      std::string why, std::string fix) {
  throw DataError({.what = std::move(what),
                   .where = name + ", byte " + std::to_string(byte),
                   .why = std::move(why),
                   .fix = std::move(fix)});
}

/// Refuses what would take too much memory, and what the file cannot hold: `most` is how many
/// pixels a compressed byte of the format stands for at most.
inline void check_claim(std::uint64_t height, std::uint64_t width, std::uint64_t size,
                        std::uint64_t most, DecodeOptions const& options, std::string const& name,
                        std::size_t byte) {
  auto const claim = std::to_string(width) + " x " + std::to_string(height) + " pixels";
  if (height * width > options.pixels) {
    refuse_image("the image is too large", name, byte,
                 "it claims " + claim + ", and the limit is " + std::to_string(options.pixels),
                 "Leave the file out, or raise DecodeOptions::pixels.");
  }
  if (height * width / most > size) {
    refuse_image("the file cannot hold its image", name, byte,
                 "it claims " + claim + ", and has " + std::to_string(size) + " bytes",
                 "Fetch the file again.");
  }
}

/// The luma of ITU-R BT.601 in 16-bit fixed point, as Pillow has it.
template <class Value>
Value luma(Value const* rgb) {
  return static_cast<Value>((std::uint64_t{rgb[0]} * 19595 + std::uint64_t{rgb[1]} * 38470 +
                             std::uint64_t{rgb[2]} * 7471 + 0x8000) >>
                            16);
}

template <class Value>
void convert_values(Value const* in, std::uint32_t from, Value* out, std::uint32_t to,
                    std::size_t count) {
  bool const grey = from < 3;
  for (std::size_t i = 0; i < count; ++i, in += from, out += to) {
    if (to == 1) {
      out[0] = grey ? in[0] : luma(in);
      continue;
    }
    for (std::size_t c = 0; c < 3; ++c) out[c] = in[grey ? 0 : c];
    if (to == 4) out[3] = from % 2 == 0 ? in[from - 1] : static_cast<Value>(~Value{0});
  }
}

/// Whether the EXIF orientation has to be known.
inline bool reads_orientation(DecodeOptions const& options) {
  return options.orient || options.upright_only;
}

}  // namespace detail

/// The image with the channels that are asked for.
inline RawImage with_channels(RawImage image, Channels channels) {
  if (channels == Channels::as_stored || channels == Channels::labels) return image;
  std::uint32_t const to = channels == Channels::grey ? 1 : channels == Channels::rgb ? 3 : 4;
  if (to == image.channels) return image;
  std::size_t const count = std::size_t{image.height} * image.width;
  std::vector<std::uint8_t> out(count * to * image.bits / 8);
  if (image.bits == 16) {  // the memory of a vector is aligned for every type
    detail::convert_values(reinterpret_cast<std::uint16_t const*>(image.bytes.data()),
                           image.channels, reinterpret_cast<std::uint16_t*>(out.data()), to, count);
  } else {
    detail::convert_values(image.bytes.data(), image.channels, out.data(), to, count);
  }
  image.channels = to;
  image.bytes = std::move(out);
  return image;
}

/// The image turned upright: `orientation` is EXIF's, 1 to 8, and 1 is upright.
/// Source  CIPA DC-008 (Exif 2.32), section 4.6.4, tag 0x0112.
inline RawImage oriented(RawImage image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  bool const turned = orientation >= 5;  // rows become columns
  bool const from_right = orientation == 2 || orientation == 3 || orientation >= 7;
  bool const from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  RawImage out{.height = turned ? image.width : image.height,
               .width = turned ? image.height : image.width,
               .channels = image.channels,
               .bits = image.bits};
  out.bytes.resize(image.bytes.size());
  std::size_t const each = std::size_t{image.channels} * image.bits / 8;
  std::uint8_t* to = out.bytes.data();
  for (std::size_t y = 0; y < out.height; ++y) {
    for (std::size_t x = 0; x < out.width; ++x, to += each) {
      std::size_t const row = turned ? x : y;
      std::size_t const column = turned ? y : x;
      std::size_t const from_row = from_below ? image.height - 1 - row : row;
      std::size_t const from_column = from_right ? image.width - 1 - column : column;
      std::memcpy(to, image.bytes.data() + (from_row * image.width + from_column) * each, each);
    }
  }
  return out;
}

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

namespace detail {

/// Refuses an image that is not upright if it has to be, and turns it as the options say.
inline RawImage oriented_as(DecodeOptions const& options, RawImage image, int orientation,
                            std::string const& name) {
  if (options.upright_only && orientation != 1) {
    refuse_image("the image is not upright", name, 0,
                 "its EXIF orientation is " + std::to_string(orientation) +
                     ", and its annotations may be of the pixels as stored or as turned",
                 "Say which: Exif::stored, or Exif::turned; or rotate the file.");
  }
  return options.orient ? oriented(std::move(image), orientation) : image;
}

}  // namespace detail
}  // namespace frugal
