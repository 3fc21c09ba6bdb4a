// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include <png.h>

namespace frugal::detail {

/// Encodes 8-bit pixels, row by row, of 1 (grey), 3 (RGB) or 4 (RGBA) channels. Throws what libpng
/// says if it fails.
inline std::string encode_png(std::uint32_t height, std::uint32_t width, std::uint32_t channels,
                              std::span<std::uint8_t const> pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format =
      channels == 1 ? PNG_FORMAT_GRAY : (channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA);
  if (pixels.size() != std::size_t{height} * width * channels) {
    throw std::invalid_argument("the image has another size than its pixels");
  }
  std::string out(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = out.size();
  if (png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr) == 0) {
    std::string const why = image.message;
    png_image_free(&image);
    throw std::runtime_error("libpng: " + why);
  }
  out.resize(size);
  return out;
}

}  // namespace frugal::detail
