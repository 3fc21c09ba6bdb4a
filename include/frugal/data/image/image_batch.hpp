// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, N images of the result, C channels, H rows, W columns, ... whatever one image has.
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/core/source/sample_set.hpp>

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Numbers of rows, or factors of them, as a tensor on the device of `like`.
template <class Number>
at::Tensor on_device_of(at::Tensor const& like, std::vector<Number> const& numbers) {
  return at::tensor(numbers).to(like.device());
}

/// The batch with `change(some)` in place of the given rows. The batch itself stays as it is, and
/// comes back as it is if there are no rows.
template <class Change>
at::Tensor change_rows(at::Tensor const& images, std::vector<std::int64_t> const& rows,
                       Change&& change) {
  if (rows.empty()) return images;
  if (static_cast<std::int64_t>(rows.size()) == images.size(0)) return change(images);
  at::Tensor const which = on_device_of(images, rows);
  return images.index_copy(0, which, change(images.index_select(0, which)));
}

}  // namespace frugal::detail

namespace frugal {

/// A rectangle of an image.
struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;  ///< pixels

  friend bool operator==(Box const&, Box const&) = default;
};

/// A rectangle of image `from`, and where its top left corner goes in image `to` of the result.
struct Patch {
  std::int64_t from = 0;
  Box box{};
  std::int64_t to = 0, top = 0, left = 0;
};

namespace detail {

/// Pastes by operators, for memory that the host cannot read.
void paste_by_operators(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
                        std::span<Patch const> patches);

/// Copies each patch's rows, which are contiguous bytes in either order of memory.
void paste_by_rows(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
                   std::span<Patch const> patches, bool channels_last);

/// Copies patches of a batch into another one of the same dtype, device and channels.
///
/// Cost  on the CPU a memcpy per row of a patch; on a device an operator per patch.
void paste(at::Tensor const& images_BCHW, at::Tensor const& out_NCHW,
           std::span<Patch const> patches);

/// Memory for `count` images like those of a batch, of another size, in its order of memory.
at::Tensor empty_images(at::Tensor const& images_BCHW, std::int64_t height, std::int64_t width);

}  // namespace detail
}  // namespace frugal

namespace frugal::detail {

inline std::string number_text(double number) {
  return general(number, 17) + ",";  // every bit of it
}

/// What a transform of images is, for caches: its name, the version of its code, and its settings.
/// Raise the version when the code gives other images.
template <class... Settings>
std::string image_transform_text(char const* name, int code_version, Settings const&... settings) {
  std::string text = std::string(name) + "/" + std::to_string(code_version) + "(";
  [[maybe_unused]] auto const add = [&](auto const& setting) {
    if constexpr (std::ranges::range<decltype(setting)>) {
      text += '[';
      for (auto const& each : setting) text += number_text(static_cast<double>(each));
      text += "],";
    } else if constexpr (std::integral<std::remove_cvref_t<decltype(setting)>>) {
      text += std::to_string(setting) + ",";  // a stream's number has more bits than a double
    } else {
      text += number_text(static_cast<double>(setting));
    }
  };
  (add(settings), ...);
  return text + ")";
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/image_batch.ipp>
#endif
