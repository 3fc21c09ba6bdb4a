// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels (1 or 3 for ColorJitter), H rows, W columns.
#pragma once

#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/image/image_batch.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace frugal {

/// Transform: bytes from 0 to 255 become float32 from 0 to 1; floats stay as they are.
///
/// Equal to  torchvision.transforms.v2.functional.to_dtype(scale=True).
struct ToFloat {
  static constexpr bool keeps_geometry = true;  // Augment: annotations stay as they are

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
struct Normalize {
  std::vector<double> mean{0.485, 0.456, 0.406};  ///< one number per channel
  std::vector<double> std{0.229, 0.224, 0.225};   ///< one number per channel

  static constexpr bool keeps_geometry = true;  // Augment: annotations stay as they are

  std::string identity() const { return detail::image_transform_text("Normalize", 1, mean, std); }

  at::Tensor operator()(at::Tensor const& images) const {
    at::Tensor const scaled = ToFloat{}(images);
    auto const channels = images.size(-3);
    if (static_cast<std::int64_t>(mean.size()) != channels || std.size() != mean.size()) {
      throw ShapeError({.what = "the channels do not fit mean and std",
                        .where = "Normalize",
                        .why = "the images are " + detail::shape_text(images) + ", with " +
                               std::to_string(mean.size()) + " means and " +
                               std::to_string(std.size()) + " standard deviations",
                        .fix = "Give mean and std one number per channel."});
    }
    for (double const each : std) {
      detail::check_setting(each != 0, "a standard deviation of 0", "Normalize",
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

// Changes of color, with a factor for each image of a batch [B, C, H, W] of uint8 or floats. Equal
// to torchvision.transforms.v2.functional's adjust_brightness and the like, which take one factor.
// Images of one channel have no saturation and no hue, and stay as they are.
namespace frugal {

namespace detail {

/// Throws ShapeError unless there are 1 or 3 channels and one factor per image.
void check_colors(at::Tensor const& images, std::span<double const> factors, char const* caller);

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

/// Turns the circle of colors: 0 changes nothing, -0.5 and 0.5 give the complementary color.
at::Tensor adjust_hue(at::Tensor const& images, std::span<double const> factors);

/// Random transform: changes brightness, contrast, saturation and hue, in an order of its own for
/// each image. The first three have a factor from max(0, 1 - x) to 1 + x, the hue a turn from -x to
/// x; 0 leaves a change out. Factors and order are drawn from each image's key.
///
/// Cost    about 5 operators for brightness, 10 for contrast and for saturation, 40 for hue, each
///         over all images once, in at most four parts; large images on the CPU one by one, which
///         keeps them in the cache.
/// Equal to  torchvision.transforms.v2.ColorJitter in distribution, and image by image in value.
struct ColorJitter {
  double brightness = 0;  ///< 0 or more
  double contrast = 0;    ///< 0 or more
  double saturation = 0;  ///< 0 or more
  double hue = 0;         ///< 0 to 0.5
  std::uint64_t stream = draw_stream("ColorJitter");

  static constexpr bool keeps_geometry = true;  // Augment: annotations stay as they are

  /// What is done to an image: the changes (0 brightness, 1 contrast, 2 saturation, 3 hue) in their
  /// order, and the factor of each change.
  struct Plan {
    std::array<int, 4> order{0, 1, 2, 3};
    std::array<double, 4> factors{1, 1, 1, 0};
  };
  Plan plan(SampleKey const& key) const;

  std::string identity() const;

  at::Tensor operator()(at::Tensor const& images, std::span<SampleKey const> keys) const {
    detail::check_images(images, keys, "ColorJitter");
    detail::check_setting(brightness >= 0 && contrast >= 0 && saturation >= 0,
                          "a negative width of the jitter", "ColorJitter",
                          "Set brightness, contrast and saturation to 0 or more.");
    detail::check_setting(hue >= 0 && hue <= 0.5, "a hue outside of 0 to 0.5", "ColorJitter",
                          "Set hue to 0.5 at most: half a turn of the circle of colors.");
    std::vector<Plan> plans;
    plans.reserve(keys.size());
    for (SampleKey const& key : keys) plans.push_back(plan(key));
    if (brightness == 0 && contrast == 0 && saturation == 0 && hue == 0) return images;
    // Large images stay in the processor's cache only one at a time.
    constexpr std::int64_t large = std::int64_t{1} << 14;
    if (images.is_cpu() && images.numel() / images.size(0) >= large)
      return one_by_one(images, plans);
    at::Tensor out = images;
    for (std::size_t turn = 0; turn < 4; ++turn) {
      for (int const change : {0, 1, 2, 3}) out = changed(out, plans, turn, change);
    }
    return out;
  }

 private:
  static constexpr std::array changes{adjust_brightness, adjust_contrast, adjust_saturation,
                                      adjust_hue};

  bool leaves_out(int change) const {
    return std::array{brightness, contrast, saturation, hue}[static_cast<std::size_t>(change)] == 0;
  }

  at::Tensor one_by_one(at::Tensor const& images, std::vector<Plan> const& plans) const;

  /// The images whose change at this turn is `change`.
  at::Tensor changed(at::Tensor const& images, std::vector<Plan> const& plans, std::size_t turn,
                     int change) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/color.ipp>
#endif
