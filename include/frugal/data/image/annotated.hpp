// SPDX-License-Identifier: Apache-2.0
// Shapes: C channels, H rows, W columns, N objects, K keypoints of an object.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/data/image/image_batch.hpp>

namespace frugal {

/// An image with what is marked on it. Parts that were not asked for are undefined; an image without
/// an object has boxes [0, 4]. Coordinates are in pixels from the top left corner of the image: a
/// box ends where its last pixel ends, and a keypoint is the number of a column and a row.
struct AnnotatedImage {
  at::Tensor data{};    ///< [C, H, W] of uint8, or of floats
  at::Tensor mask{};    ///< [H, W] int64: the class of each pixel, -100 where there is none
  at::Tensor boxes{};   ///< [N, 4] float32: left, top, right, bottom
  at::Tensor labels{};  ///< [N] int64
  at::Tensor crowd{};   ///< [N] bool: a region of objects that were not marked one by one
  at::Tensor
      keypoints{};      ///< [N, K, 3] float32: x, y, visibility; 0, 0, 0 for one that is not marked
  std::int64_t id = 0;  ///< COCO's, or the number in the set

  /// Augment moves the annotations with the image.
  static constexpr bool annotated = true;

  void each_tensor(auto&& f) { f(data, mask, boxes, labels, crowd, keypoints); }
};

/// Keypoints that are each other in a mirror, such as the left and the right eye: their numbers.
using KeypointPairs = std::vector<std::array<std::int64_t, 2>>;

/// Pairs by the keypoints' names: those that differ in "left" and "right" alone.
KeypointPairs keypoint_pairs(std::vector<std::string> const& names);

namespace detail {

/// ShapeError unless the parts are of one image.
void check_annotated(AnnotatedImage const& sample, char const* caller);

// What becomes of the annotations when the image changes; the image itself stays.

/// The numbers of the keypoints in a mirrored image, where `pairs` are swapped: the left hand of a
/// mirrored person is a right hand. SettingsError for keypoints without pairs, and for a pair of
/// keypoints that do not exist. Empty for a sample without keypoints.
std::vector<std::int64_t> mirrored_order(AnnotatedImage const& sample,
                                         std::optional<KeypointPairs> const& pairs);
/// Mirrored; `order` is that of the keypoints.
void flip_annotations(AnnotatedImage& sample, bool vertical,
                      std::vector<std::int64_t> const& order);
/// From the size of the image to another one.
void resize_annotations(AnnotatedImage& sample, std::int64_t height, std::int64_t width);
/// `box` may reach past the image: there the mask is -100. Boxes are clipped; those of which less than
/// the share `visible` of the area is left, or nothing, are removed with their keypoints. Keypoints
/// outside are 0, 0, 0. SettingsError for a share outside of 0 to 1.
void crop_annotations(AnnotatedImage& sample, Box const& box, double visible);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/annotated.ipp>
#endif
