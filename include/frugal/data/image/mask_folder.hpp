// SPDX-License-Identifier: Apache-2.0
// needs: images
// Shapes: C channels, H rows, W columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/image/annotated.hpp>
#include <frugal/data/image/decode.hpp>
#include <frugal/data/image/folder.hpp>
#include <frugal/error.hpp>

namespace frugal {

struct MaskFolderOptions {
  std::int64_t classes = 0;               ///< a mask has numbers below this; needed
  std::optional<std::int64_t> ignored{};  ///< and this one, which becomes -100: 255 in Pascal VOC
  bool only_with_mask = false;            ///< leave out images without a mask, instead of refusing
  DecodeOptions decoding{};  ///< of images, but at_least, which must be 0; files must be upright
};

/// A set of images with masks of their pixels' classes: images/a.jpg and masks/a.png, at the same
/// path in two folders, in the order of their paths. Which files are images, ImageFolder says.
///
/// A mask is a PNG file of one grey channel or with a palette, of which the index counts and not the
/// color, so that Pascal VOC's are read as they are.
///
/// Errors  DataError for a folder that cannot be read; for an image without a mask, a mask without
///         an image, and two images of one name; from get(), those of ImageFolder for either file, a
///         mask with colors or of another size than its image, and a number that is no class, with
///         its pixel.
class MaskFolder {
 public:
  MaskFolder(std::filesystem::path images, std::filesystem::path masks, MaskFolderOptions options)
      : images_(std::move(images)), masks_(std::move(masks)), options_(options) {
    detail::check_setting(options.classes > 0, "the number of classes is not set", "MaskFolder",
                          "Set MaskFolderOptions::classes, the background included.");
    detail::check_setting(options.decoding.at_least == 0, "at_least changes the size of images",
                          "MaskFolder", "Leave it 0, and resize with Augment{Resize{...}}.");
    options_.decoding.orient = false;
    options_.decoding.upright_only = true;
    list();
  }

  std::uint64_t size() const { return all_->size(); }

  AnnotatedImage get(std::uint64_t index) const {
    Pair const& pair = all_->at(index);
    AnnotatedImage sample{.data = read_image(images_ / pair.image, options_.decoding),
                          .id = static_cast<std::int64_t>(index)};
    DecodeOptions labels = options_.decoding;
    labels.channels = Channels::labels;
    std::filesystem::path const path = masks_ / pair.mask;
    at::Tensor const stored = read_image(path, labels).select(0, 0);
    if (stored.size(0) != sample.data.size(1) || stored.size(1) != sample.data.size(2)) {
      auto const size = [](at::Tensor const& x) {
        return std::to_string(x.size(-1)) + " x " + std::to_string(x.size(-2));
      };
      refuse("a mask has another size than its image", path.string() + ", of " + name(index),
             "it is " + size(stored) + ", and the image " + size(sample.data),
             "Make the mask again, at the size of the image.");
    }
    sample.mask = stored.to(at::kLong).contiguous();
    std::int64_t* const label = sample.mask.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < sample.mask.numel(); ++i) {
      if (label[i] == options_.ignored) {
        label[i] = ignored_label;
      } else if (label[i] >= options_.classes) {
        std::int64_t const columns = sample.mask.size(1);
        refuse("a mask has a class that does not exist",
               path.string() + ", row " + std::to_string(i / columns) + ", column " +
                   std::to_string(i % columns),
               "it is " + std::to_string(label[i]) + ", and there are " +
                   std::to_string(options_.classes) + " classes",
               "Set MaskFolderOptions::classes, or ignored, to what the masks have.");
      }
    }
    return sample;
  }

  /// Path of an image.
  std::string name(std::uint64_t index) const { return (images_ / all_->at(index).image).string(); }

  /// As ImageFolder's, of images and masks.
  std::string identity() const {
    detail::ImageFilesText text;
    for (Pair const& pair : *all_) {
      text.add_file(images_, pair.image);
      text.add_file(masks_, pair.mask);
    }
    text.add(options_text());
    return "MaskFolder/1 " + std::to_string(size()) + " " + text.text();
  }

  /// Wherever the folders lie, and whenever they were fetched; and the options.
  void identify(DataIdentity& to) const {
    detail::FilesIdentity files(2 * all_->size());
    for (Pair const& pair : *all_) files.add(images_ / pair.image, pair.image);
    for (Pair const& pair : *all_) files.add(masks_ / pair.mask, pair.mask);
    files.identify(to);
    to.add("decoding", options_text());
  }

 private:
  struct Pair {
    std::string image, mask;  ///< below their folders
  };

  std::string options_text() const {
    return detail::decoding_text(options_.decoding) + " " + std::to_string(options_.classes) + " " +
           (options_.ignored ? std::to_string(*options_.ignored) : "");
  }

  [[noreturn]] static void refuse(char const* what, std::string where, std::string why,
                                  char const* fix) {
    throw DataError({.what = what, .where = std::move(where), .why = std::move(why), .fix = fix});
  }

  void list() {
    std::map<std::string, Pair> pairs;  // by path without its end
    auto const add = [&](std::filesystem::path const& folder, std::string Pair::* which) {
      for (std::string& path : detail::image_files(folder, folder)) {
        std::string& file = pairs[std::filesystem::path(path).replace_extension().string()].*which;
        if (!file.empty()) {
          refuse("two files have one name", (folder / path).string(), "the other is " + file,
                 "Rename or remove one: an image and its mask are found by their name.");
        }
        file = std::move(path);
      }
    };
    add(images_, &Pair::image);
    add(masks_, &Pair::mask);
    auto all = std::make_shared<std::vector<Pair>>();
    for (auto& [path, pair] : pairs) {
      if (pair.image.empty()) {
        refuse("a mask has no image", (masks_ / pair.mask).string(),
               "there is no " + (images_ / path).string() + ".jpg, .jpeg or .png",
               "Put the image there, or remove the mask.");
      }
      if (pair.mask.empty()) {
        if (options_.only_with_mask) continue;
        refuse("an image has no mask", (images_ / pair.image).string(),
               "there is no " + (masks_ / path).string() + ".png",
               "Put the mask there, or set MaskFolderOptions::only_with_mask.");
      }
      all->push_back(std::move(pair));
    }
    if (all->empty()) {
      refuse("there is no image with a mask", images_.string() + " and " + masks_.string(),
             "images and masks end in .jpg, .jpeg or .png", "Check the folders.");
    }
    all_ = std::move(all);
  }

  std::filesystem::path images_, masks_;
  MaskFolderOptions options_;
  std::shared_ptr<std::vector<Pair> const> all_;  // copies share the list
};

}  // namespace frugal
