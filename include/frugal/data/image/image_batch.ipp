// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/image_batch.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE void check_images(at::Tensor const& images, char const* caller) {
  if (images.dim() < 3 || images.numel() == 0) {
    throw ShapeError({.what = "the tensor is no image",
                      .where = caller,
                      .why = "it is " + shape_text(images),
                      .fix = "Give [C, H, W] or [B, C, H, W], without a dimension of 0."});
  }
  if (!images.is_floating_point() && images.scalar_type() != at::kByte) {
    throw DtypeError({.what = "the tensor is no image",
                      .where = caller,
                      .why = std::string("it has dtype ") + c10::toString(images.scalar_type()),
                      .fix = "Give uint8 from 0 to 255, or floats from 0 to 1."});
  }
}

FRUGAL_INLINE void check_images(at::Tensor const& images, std::span<SampleKey const> keys,
                                char const* caller) {
  check_images(images, caller);
  if (images.dim() == 4 && images.size(0) == static_cast<std::int64_t>(keys.size())) return;
  throw ShapeError({.what = "there is not one key for each image",
                    .where = caller,
                    .why = "the images are " + shape_text(images) + ", with " +
                           std::to_string(keys.size()) + " keys",
                    .fix = "Give [B, C, H, W] and the SampleKeys of its B rows."});
}

FRUGAL_INLINE void check_setting(bool holds, char const* what, char const* caller,
                                 char const* fix) {
  if (holds) return;
  throw SettingsError({.what = what, .where = caller, .why = "", .fix = fix});
}

FRUGAL_INLINE void paste_by_operators(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
                                      std::span<Patch const> patches) {
  for (Patch const& each : patches) {
    out_NCHW.select(0, each.to)
        .narrow(1, each.top, each.box.height)
        .narrow(2, each.left, each.box.width)
        .copy_(images_BCHW.select(0, each.from)
                   .narrow(1, each.box.top, each.box.height)
                   .narrow(2, each.box.left, each.box.width));
  }
}

FRUGAL_INLINE void paste_by_rows(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
                                 std::span<Patch const> patches, bool channels_last) {
  auto const* const in = static_cast<char const*>(images_BCHW.const_data_ptr());
  auto* const out = static_cast<char*>(out_NCHW.mutable_data_ptr());
  std::int64_t const channels = channels_last ? 1 : images_BCHW.size(1);
  std::int64_t const pixel = static_cast<std::int64_t>(images_BCHW.element_size()) *
                             (channels_last ? images_BCHW.size(1) : 1);
  std::int64_t const in_height = images_BCHW.size(2), in_row = images_BCHW.size(3) * pixel;
  std::int64_t const out_height = out_NCHW.size(2), out_row = out_NCHW.size(3) * pixel;
  for (Patch const& each : patches) {
    auto const bytes = static_cast<std::size_t>(each.box.width * pixel);
    for (std::int64_t c = 0; c < channels; ++c) {
      char const* from = in + ((each.from * channels + c) * in_height + each.box.top) * in_row +
                         each.box.left * pixel;
      char* to =
          out + ((each.to * channels + c) * out_height + each.top) * out_row + each.left * pixel;
      for (std::int64_t y = 0; y < each.box.height; ++y, from += in_row, to += out_row) {
        std::memcpy(to, from, bytes);
      }
    }
  }
}

FRUGAL_INLINE void paste(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
                         std::span<Patch const> patches) {
  auto const both = [&](at::MemoryFormat format) {
    return images_BCHW.is_cpu() && images_BCHW.is_contiguous(format) &&
           out_NCHW.is_contiguous(format);
  };
  if (both(at::MemoryFormat::Contiguous)) {
    paste_by_rows(images_BCHW, out_NCHW, patches, false);
  } else if (both(at::MemoryFormat::ChannelsLast)) {
    paste_by_rows(images_BCHW, out_NCHW, patches, true);
  } else {
    paste_by_operators(images_BCHW, out_NCHW, patches);
  }
}

FRUGAL_INLINE at::Tensor empty_images(at::Tensor const& images_BCHW, std::int64_t height,
                                      std::int64_t width) {
  return at::empty({images_BCHW.size(0), images_BCHW.size(1), height, width},
                   images_BCHW.options().memory_format(images_BCHW.suggest_memory_format()));
}

}  // namespace frugal::detail
