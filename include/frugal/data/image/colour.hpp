// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels (1 or 3), H rows, W columns.
#pragma once

#include <span>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>

// Changes of colour, with a factor for each image of a batch [B, C, H, W] of uint8 or floats. Equal
// to torchvision.transforms.v2.functional's adjust_brightness and the like, which take one factor.
// Images of one channel have no saturation and no hue, and stay as they are.
namespace frugal {

namespace detail {

/// Throws ShapeError unless there are 1 or 3 channels and one factor per image.
void check_colours(at::Tensor const& images, std::span<double const> factors, char const* caller);

/// [B, 1, 1, 1], of the dtype that the images have as floats.
at::Tensor per_image(at::Tensor const& images, std::vector<double> const& factors);

/// The luma [B, 1, H, W] as floats; of bytes rounded down.
at::Tensor grey_of(at::Tensor const& images);

/// images * factor + other * (1 - factor), within the range of the images.
at::Tensor blended(at::Tensor const& images, at::Tensor const& other,
                   std::span<double const> factors);

/// Hue, saturation and value [B, H, W] of floats.
std::tuple<at::Tensor, at::Tensor, at::Tensor> to_hsv(at::Tensor const& images);

/// Floats [B, 3, H, W] of hue, saturation and value.
at::Tensor from_hsv(at::Tensor const& hue, at::Tensor const& saturation, at::Tensor const& value);

}  // namespace detail

/// The images times a factor: 0 is black, 1 changes nothing.
at::Tensor adjust_brightness(at::Tensor const& images, std::span<double const> factors);

/// Away from the image's mean grey, or towards it: 0 is grey, 1 changes nothing.
at::Tensor adjust_contrast(at::Tensor const& images, std::span<double const> factors);

/// Away from each pixel's grey, or towards it: 0 is grey, 1 changes nothing.
at::Tensor adjust_saturation(at::Tensor const& images, std::span<double const> factors);

/// Turns the circle of colours: 0 changes nothing, -0.5 and 0.5 give the complementary colour.
at::Tensor adjust_hue(at::Tensor const& images, std::span<double const> factors);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/colour.ipp>
#endif
