// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused as a COCO file with a DataError that has the byte, or give
// objects of known classes, boxes within their images and masks of their classes. Everything else ends the
// program; the sanitizers check the rest.
#include <frugal/data/image/coco_file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "demand.hpp"

using frugal_fuzz::demand;

/// The first byte chooses the options, the others are the file.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  unsigned const choice = data[0];
  frugal::CocoOptions const options{
      .boxes = (choice & 1U) == 0,
      .mask = (choice & 2U) == 0,
      .keypoints = (choice & 4U) == 0,
      .bad = (choice & 8U) == 0 ? frugal::BadAnnotations::drop : frugal::BadAnnotations::refuse};
  if (!options.boxes && !options.mask && !options.keypoints) return 0;
  std::string text(reinterpret_cast<char const*>(data) + 1, size - 1);
  try {
    frugal::CocoFile const file = frugal::parse_coco(std::move(text), options, "fuzz");
    demand(file.classes.size() == file.category_ids.size(), "a class has an id");
    for (frugal::CocoImage const& image : file.images) {
      for (frugal::CocoObject const& object : image.objects) {
        auto const& [left, top, right, bottom] = object.box;
        demand(static_cast<std::size_t>(object.label) < file.classes.size(), "a label is a class");
        demand(!object.has_box || (0 <= left && left < right && right <= image.width && 0 <= top &&
                                   top < bottom && bottom <= image.height),
               "a box has an area within its image");
        demand(object.keypoints.empty() || object.keypoints.size() == 3 * file.keypoints.size(),
               "an object has the keypoints of the file");
      }
      // Large images take their time.
      if (!options.mask || image.height > 256 || image.width > 256) continue;
      for (std::int64_t const label : frugal::coco_mask(image)) {
        demand(
            label == -100 || (label >= 0 && static_cast<std::size_t>(label) <= file.classes.size()),
            "a pixel has a class, none, or several");
      }
    }
  } catch (frugal::DataError const& error) {
    unsigned long byte = 0;
    demand(std::sscanf(error.fault().where.c_str(), "fuzz, byte %lu", &byte) == 1 && byte <= size,
           "a wrong file is refused with a byte of it");
    demand(!error.fault().what.empty(), "a wrong file is refused with what");
  }
  return 0;
}
