// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <span>

#include <ATen/ATen.h>

#include <frugal/core/source/sample_set.hpp>

namespace frugal::detail {

/// The largest value of an image: 255 for bytes, 1 for floats.
inline double brightest(at::Tensor const& images) { return images.is_floating_point() ? 1 : 255; }

/// Throws ShapeError unless the tensor is [..., C, H, W], and DtypeError unless it has uint8 or a
/// floating type.
void check_images(at::Tensor const& images, char const* caller);

/// Checks a batch [B, C, H, W] with a key for each image.
void check_images(at::Tensor const& images, std::span<SampleKey const> keys, char const* caller);

/// Throws SettingsError unless it holds.
void check_setting(bool holds, char const* what, char const* caller, char const* fix);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/check_images.ipp>
#endif
