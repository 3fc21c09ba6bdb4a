// SPDX-License-Identifier: Apache-2.0
// Shapes: H rows, W columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// Regions of an image as COCO stores them: pixels are numbered column by column, so that pixel
// (row, column) has number column * H + row.
namespace frugal::detail {

/// Pixels from number `begin` to below `end`.
struct PixelRun {
  std::uint64_t begin = 0, end = 0;

  friend bool operator==(PixelRun const&, PixelRun const&) = default;
};

/// The pixels of a polygon x, y, x, y, ... of three vertices or more, in pixels from the top left corner.
///
/// Equal to  pycocotools, to the pixel: the outline is drawn on a grid of five points per pixel, and
///           a column changes sides where the outline crosses its middle. Of a polygon that crosses
///           itself pixels are within that an odd number of outlines encloses.
/// Source    rleFrPoly of cocodataset/cocoapi.
std::vector<PixelRun> polygon_runs(std::span<double const> xy, std::uint32_t height,
                                   std::uint32_t width);

/// Lengths of runs that are alternately without and within, beginning with without.
std::vector<PixelRun> counted_runs(std::span<std::uint32_t const> counts);

/// The lengths that COCO writes as a text: six bits to a character, each length from the fourth on
/// as the difference from the last but one. Nothing if the text is none, or has a length below 0 or
/// above 2^32 - 1.
/// Source  rleFrString of cocodataset/cocoapi.
std::optional<std::vector<std::uint32_t>> decoded_counts(std::string_view text);

/// Writes `label` into a mask [H, W] of int64, whose rows are contiguous: where it is 0, or `label`
/// already. Where it is another class, the pixel belongs to two objects of which COCO does not say
/// which is in front: it becomes `ignored`.
void paint(std::span<PixelRun const> runs, std::int64_t label, std::int64_t ignored,
           std::uint32_t height, std::uint32_t width, std::span<std::int64_t> mask_HW);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/image/region.ipp>
#endif
