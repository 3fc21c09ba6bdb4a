// SPDX-License-Identifier: Apache-2.0
// Shapes: K keypoints of an object.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <frugal/data/image/pixels.hpp>

namespace frugal {

/// Of an image whose EXIF orientation turns it: which pixels its annotations were made on.
enum class Exif {
  refuse,  ///< nobody knows: a DataError
  stored,  ///< those of the file, as pycocotools and torchvision read them; the image is not turned
  turned,  ///< those that a viewer shows; the image is turned
};

/// An annotation that does not lie within its image.
enum class BadAnnotations {
  refuse,  ///< a DataError
  drop,    ///< is clipped, or left out where nothing is left; counted
};

/// What is read of a COCO file, and how.
struct CocoOptions {
  bool boxes = true;
  bool mask = false;       ///< from the objects' segmentations
  bool keypoints = false;  ///< and their boxes
  BadAnnotations bad = BadAnnotations::refuse;
  Exif exif = Exif::refuse;
  DecodeOptions decoding{};  ///< of images; `exif` replaces `orient`, and at_least must be 0
};

/// An object of an image.
struct CocoObject {
  std::int64_t id = 0;
  std::int64_t label = 0;           ///< of the category: 0, 1, ... in the order of their ids
  std::array<double, 4> box{};      ///< left, top, right, bottom: pixels, within the image
  bool has_box = false;             ///< false: has none, was not asked for, or was dropped
  bool crowd = false;               ///< COCO's iscrowd
  std::vector<double> keypoints{};  ///< [K, 3]: x, y, visibility; empty if it has none
  std::vector<std::vector<double>> polygons{};  ///< x, y, x, y, ...
  std::vector<std::uint32_t> counts{};          ///< lengths of runs, of a region that is no polygon
};

struct CocoImage {
  std::int64_t id = 0;
  std::string file{};  ///< below the folder of images
  std::uint32_t height = 0, width = 0;
  std::vector<CocoObject> objects{};
};

/// The annotations of a COCO file: images in the order of their ids, and of each its objects, in
/// the order of the file.
struct CocoFile {
  std::vector<CocoImage> images{};
  std::vector<std::string> classes{};  ///< names of the categories, in the order of their ids
  std::vector<std::int64_t> category_ids{};
  std::vector<std::string> keypoints{};  ///< names of the K keypoints, if they were asked for
  std::uint64_t clipped = 0;             ///< boxes, by more than a pixel
  std::uint64_t dropped = 0;             ///< objects without area, or outside of their image
  std::uint64_t hidden = 0;              ///< keypoints outside of their image
  std::string first_bad{};               ///< what was wrong with the first of these

  /// "... boxes were dropped", or nothing.
  std::string warning() const;
};

/// Reads the parts that are asked for from the text of a COCO file: `images`, `annotations` and
/// `categories`, in any order. Errors call it `name`.
///
/// Coordinates are as in COCO: a box has its left, top, width and height; a box that reaches past
/// its image by up to a pixel is clipped. A keypoint of visibility 0 is 0, 0, 0.
///
/// Cost    the text, which is parsed in place; and 8 bytes for each coordinate of a polygon, if
///         masks are asked for.
/// Errors  DataError with the byte, and the annotation's id: what is no JSON; a list that is
///         missing; a number that is missing, not finite or of the wrong kind; an id that is there
///         twice; an annotation of an image or a category that is not there. With
///         BadAnnotations::refuse also a box without area, or that reaches past its image by more
///         than a pixel, and a keypoint outside of it.
///         SettingsError for mask, boxes and keypoints that are all false.
CocoFile parse_coco(std::string text, CocoOptions const& options, std::string const& name);

/// The mask of an image, H rows of W numbers: 0 for the background, label + 1 for an object. Pixels
/// of two objects of different categories are -100: COCO does not say which is in front.
std::vector<std::int64_t> coco_mask(CocoImage const& image);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/coco_file.ipp>
#endif
