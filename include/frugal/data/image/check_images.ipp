// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/check_images.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdint>
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

}  // namespace frugal::detail
