// SPDX-License-Identifier: Apache-2.0
// needs: images
// Shapes: C channels, H rows, W columns, N objects of an image, K keypoints of an object.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/image/annotated.hpp>
#include <frugal/data/image/coco_file.hpp>
#include <frugal/data/image/decode.hpp>
#include <frugal/data/image/folder.hpp>
#include <frugal/error.hpp>

namespace frugal {

namespace detail {

/// Moves numbers into a tensor.
template <class To, class From>
at::Tensor tensor_of(std::vector<From> const& numbers, at::IntArrayRef shape) {
  at::Tensor out = at::empty(shape, c10::CppTypeToScalarType<To>::value);
  std::transform(numbers.begin(), numbers.end(), out.mutable_data_ptr<To>(),
                 [](From x) { return static_cast<To>(x); });
  return out;
}

/// The parts that the options ask for. Objects without a box are in the mask alone.
inline void annotate(AnnotatedImage& sample, CocoImage const& image, CocoOptions const& options,
                     std::size_t keypoints) {
  if (options.mask) {
    sample.mask = tensor_of<std::int64_t>(coco_mask(image), {image.height, image.width});
  }
  if (!options.boxes && !options.keypoints) return;
  std::vector<double> boxes, points;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> crowds;
  for (CocoObject const& object : image.objects) {
    if (!object.has_box) continue;
    boxes.insert(boxes.end(), object.box.begin(), object.box.end());
    labels.push_back(object.label);
    crowds.push_back(object.crowd ? 1 : 0);
    points.insert(points.end(), object.keypoints.begin(), object.keypoints.end());
    points.resize(labels.size() * keypoints * 3);
  }
  auto const objects = static_cast<std::int64_t>(labels.size());
  sample.boxes = tensor_of<float>(boxes, {objects, 4});
  sample.labels = tensor_of<std::int64_t>(labels, {objects});
  sample.crowd = tensor_of<bool>(crowds, {objects});
  if (options.keypoints) {
    sample.keypoints = tensor_of<float>(points, {objects, static_cast<std::int64_t>(keypoints), 3});
  }
}

}  // namespace detail

/// A set of images with the annotations of a COCO file: boxes, masks and keypoints, as parse_coco
/// reads them. Images are in the order of their ids; those without an object are in the set. The
/// file is read at once, an image when it is asked for.
///
/// Cost    the annotations in memory; a look at each image file at the beginning.
/// Errors  those of parse_coco; DataError for an image that is not there, or not below the folder;
///         from get(), those of ImageFolder, and DataError for an image of another size than its
///         annotations say. SettingsError for DecodeOptions::at_least, which changes the size.
class CocoImages {
 public:
  /// `folder`: where the images are; `annotations`: the JSON file.
  CocoImages(std::filesystem::path folder, std::filesystem::path const& annotations,
             CocoOptions options = {})
      : folder_(std::move(folder)), options_(options) {
    detail::check_setting(options.decoding.at_least == 0, "at_least changes the size of images",
                          "CocoImages", "Leave it 0, and resize with Augment{Resize{...}}.");
    options_.decoding.orient = options.exif == Exif::turned;
    options_.decoding.upright_only = options.exif == Exif::refuse;
    std::string text = detail::read_whole_file(annotations);
    std::string const hash = hex_of(Hash::of(std::as_bytes(std::span(text))));
    all_ = std::make_shared<All const>(parse_coco(std::move(text), options_, annotations.string()),
                                       annotations.string(), hash);
    for (CocoImage const& image : all_->file.images) require_file(image);
  }

  std::uint64_t size() const { return all_->file.images.size(); }

  AnnotatedImage get(std::uint64_t index) const {
    CocoImage const& image = all_->file.images.at(index);
    AnnotatedImage sample{.data = read_image(folder_ / image.file, options_.decoding),
                          .id = image.id};
    if (sample.data.size(1) != image.height || sample.data.size(2) != image.width) {
      throw DataError({.what = "an image has another size than its annotations say",
                       .where = name(index) + ", image " + std::to_string(image.id) + " of " +
                                all_->annotations,
                       .why = "it is " + std::to_string(sample.data.size(2)) + " x " +
                              std::to_string(sample.data.size(1)) + ", and should be " +
                              std::to_string(image.width) + " x " + std::to_string(image.height),
                       .fix = "Give the images that were annotated, or correct the file."});
    }
    detail::annotate(sample, image, options_, all_->file.keypoints.size());
    return sample;
  }

  /// Path of an image.
  std::string name(std::uint64_t index) const {
    return (folder_ / all_->file.images.at(index).file).string();
  }

  /// Names of the classes, by label.
  std::vector<std::string> const& classes() const { return all_->file.classes; }
  /// COCO's ids of the categories, by label: for results that pycocotools reads.
  std::vector<std::int64_t> const& category_ids() const { return all_->file.category_ids; }
  /// Names of the keypoints; for keypoint_pairs().
  std::vector<std::string> const& keypoints() const { return all_->file.keypoints; }
  /// What BadAnnotations::drop changed, or an empty text.
  std::string warning() const { return all_->file.warning(); }

  /// A hash of the annotations, of sizes and times of the images, and of the options, as
  /// ImageFolder's.
  std::string identity() const {
    detail::ImageFilesText text;
    for (CocoImage const& image : all_->file.images) text.add_file(folder_, image.file);
    text.add(all_->hash + options_text());
    return "CocoImages/1 " + std::to_string(size()) + " " + text.text();
  }

  /// Wherever the files lie, and whenever they were fetched; and the options.
  void identify(DataIdentity& to) const {
    detail::FilesIdentity files(all_->file.images.size());
    for (CocoImage const& image : all_->file.images) files.add(folder_ / image.file, image.file);
    files.identify(to);
    to.add("annotations", all_->hash);
    to.add("decoding", options_text());
  }

 private:
  struct All {
    CocoFile file;
    std::string annotations;  ///< path
    std::string hash;
  };

  std::string options_text() const {
    return detail::decoding_text(options_.decoding) + (options_.boxes ? "b" : "-") +
           (options_.mask ? "m" : "-") + (options_.keypoints ? "k" : "-") +
           (options_.bad == BadAnnotations::drop ? "d" : "-");
  }

  void require_file(CocoImage const& image) const {
    std::filesystem::path const path = image.file;
    bool const within = !path.is_absolute() && !path.empty() &&
                        *path.lexically_normal().begin() != std::filesystem::path("..");
    std::error_code ignored;
    if (within && std::filesystem::is_regular_file(folder_ / path, ignored)) return;
    throw DataError({.what = "an annotated image is missing",
                     .where = (folder_ / path).string() + ", image " + std::to_string(image.id) +
                              " of " + all_->annotations,
                     .why = within ? "there is no such file" : "its path leaves the folder",
                     .fix = "Give the folder of the images, or take the image out of the "
                            "annotations."});
  }

  std::filesystem::path folder_;
  CocoOptions options_;
  std::shared_ptr<All const> all_;  // copies share the annotations
};

}  // namespace frugal
