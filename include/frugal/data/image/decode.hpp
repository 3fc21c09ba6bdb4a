// SPDX-License-Identifier: Apache-2.0
// needs: images
// Shapes: C channels, H rows, W columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/image/decode_pixels.hpp>
#include <frugal/data/image/encode.hpp>
#include <frugal/data/image/pixels.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// The image as a tensor [C, H, W], uint8, or uint16 for 16 bits, without a copy: its memory keeps
/// the order of decoders, in which the channels of a pixel lie side by side (channels last).
inline at::Tensor to_tensor(RawImage image) {
  std::int64_t const channels = image.channels, height = image.height, width = image.width;
  auto const dtype = image.bits == 16 ? at::kUInt16 : at::kByte;
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(std::move(image.bytes));
  void* const data = bytes->data();
  return at::from_blob(
      data, {channels, height, width}, {1, width * channels, channels},
      [bytes = std::move(bytes)](void*) mutable { bytes.reset(); }, at::TensorOptions(dtype));
}

/// A tensor [C, H, W] of uint8 or uint16 as an image; C is 1 to 4. Throws ShapeError or DtypeError.
inline RawImage to_pixels(at::Tensor const& image) {
  bool const wide = image.scalar_type() == at::kUInt16;
  if (!wide && image.scalar_type() != at::kByte) {
    throw DtypeError({.what = "the tensor is no image",
                      .where = "to_pixels",
                      .why = std::string("it has dtype ") + c10::toString(image.scalar_type()),
                      .fix = "Give uint8: scale to 0 .. 255 and convert with .to(torch::kByte)."});
  }
  if (image.dim() != 3 || image.size(0) < 1 || image.size(0) > 4) {
    throw ShapeError({.what = "the tensor is no image",
                      .where = "to_pixels",
                      .why = "it is " + detail::shape_text(image),
                      .fix = "Give [C, H, W] with 1 to 4 channels."});
  }
  at::Tensor const dense = image.permute({1, 2, 0}).to(at::kCPU).contiguous();
  auto const* const data = static_cast<std::uint8_t const*>(dense.const_data_ptr());
  return {.height = static_cast<std::uint32_t>(image.size(1)),
          .width = static_cast<std::uint32_t>(image.size(2)),
          .channels = static_cast<std::uint32_t>(image.size(0)),
          .bits = wide ? 16U : 8U,
          .bytes = std::vector<std::uint8_t>(data, data + dense.nbytes())};
}

/// Decodes a JPEG or PNG file to [C, H, W], uint8 (uint16 for a PNG with `keep_16_bits`), RGB
/// unless the options say otherwise. Errors call it `name`.
///
/// Cost    the decoder's, and no copy: see to_tensor for the order in memory.
/// Errors  DataError with name, byte and what the library says: docs/data/image.md.
inline at::Tensor decode_image(std::span<std::byte const> bytes, DecodeOptions const& options = {},
                               std::string const& name = "image") {
  return to_tensor(decode_pixels(bytes, options, name));
}

/// Decodes a file; errors name its path.
inline at::Tensor read_image(std::filesystem::path const& path, DecodeOptions const& options = {}) {
  return decode_image(read_image_file(path), options, path.string());
}

/// The bytes of a PNG or JPEG file with an image [C, H, W], uint8.
inline std::vector<std::byte> encode_png(at::Tensor const& image, PngOptions const& options = {}) {
  return encode_png(to_pixels(image), options);
}
inline std::vector<std::byte> encode_jpeg(at::Tensor const& image,
                                          JpegOptions const& options = {}) {
  return encode_jpeg(to_pixels(image), options);
}

}  // namespace frugal
