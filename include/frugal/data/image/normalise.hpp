// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/image/check_images.hpp>
#include <frugal/data/image/transform_text.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// Transform: bytes from 0 to 255 become float32 from 0 to 1; floats stay as they are.
///
/// Equal to  torchvision.transforms.v2.functional.to_dtype(scale=True).
struct ToFloat {
  std::string identity() const { return detail::image_transform_text("ToFloat", 1); }

  at::Tensor operator()(at::Tensor const& images) const {
    detail::check_images(images, "ToFloat");
    return images.is_floating_point() ? images : images.to(at::kFloat).mul_(1.0 / 255);
  }
};

/// Transform: (x - mean) / std, channel by channel, of values from 0 to 1; bytes are scaled first.
/// The defaults are those of ImageNet.
///
/// Equal to  torchvision.transforms.v2.functional.normalize.
/// Errors    ShapeError for other channels; SettingsError for a std of 0.
struct Normalise {
  std::vector<double> mean{0.485, 0.456, 0.406};  ///< one number per channel
  std::vector<double> std{0.229, 0.224, 0.225};   ///< one number per channel

  std::string identity() const { return detail::image_transform_text("Normalise", 1, mean, std); }

  at::Tensor operator()(at::Tensor const& images) const {
    at::Tensor const scaled = ToFloat{}(images);
    auto const channels = images.size(-3);
    if (static_cast<std::int64_t>(mean.size()) != channels || std.size() != mean.size()) {
      throw ShapeError({.what = "the channels do not fit mean and std",
                        .where = "Normalise",
                        .why = "the images are " + detail::shape_text(images) + ", with " +
                               std::to_string(mean.size()) + " means and " +
                               std::to_string(std.size()) + " standard deviations",
                        .fix = "Give mean and std one number per channel."});
    }
    for (double const each : std) {
      detail::check_setting(each != 0, "a standard deviation of 0", "Normalise",
                            "Leave out the channel, or give it another std.");
    }
    auto const per_channel = [&](std::vector<double> const& numbers) {
      return at::tensor(numbers, at::TensorOptions(scaled.scalar_type()))
          .to(scaled.device())
          .view({-1, 1, 1});
    };
    at::Tensor out = scaled.is_same(images) ? scaled.sub(per_channel(mean))
                                            : at::Tensor(scaled).sub_(per_channel(mean));
    return out.div_(per_channel(std));
  }
};

}  // namespace frugal
