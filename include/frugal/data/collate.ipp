// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/collate.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdint>

namespace frugal::detail {

FRUGAL_INLINE void require_alike(std::vector<at::Tensor> const& all, SampleNames const& name,
                                 std::string const& part, bool padded) {
  auto const skip = padded ? std::size_t{1} : std::size_t{0};
  for (std::size_t i = 0; i < all.size(); ++i) {
    at::Tensor const& one = all[i];
    at::Tensor const& first = all.front();
    std::string const where = part + " of " + name(i);
    auto const both = [&] {
      return "it is " + shape_text(one) + ", and that of " + name(0) + " is " + shape_text(first);
    };
    if (!one.defined()) {
      throw DataError({.what = "a sample has no tensor",
                       .where = where,
                       .why = "it is undefined",
                       .fix = "Look at what the data set gives for it."});
    }
    if (padded && one.dim() == 0) {
      throw ShapeError({.what = "a sample has no first dimension to pad",
                        .where = where,
                        .why = "it is " + shape_text(one),
                        .fix = "Give samples of shape [length, ...]."});
    }
    if (padded && one.size(0) == 0) {
      throw DataError({.what = "a sample is empty",
                       .where = where,
                       .why = "its shape is " + shape_text(one) + ", and its first dimension is 0",
                       .fix = "Leave empty samples out of the data set."});
    }
    if (one.scalar_type() != first.scalar_type()) {
      throw DataError({.what = "samples of one batch differ in type",
                       .where = where,
                       .why = both(),
                       .fix = "Convert them in the data set."});
    }
    if (one.dim() != first.dim() || one.sizes().slice(skip) != first.sizes().slice(skip)) {
      throw ShapeError({.what = "samples of one batch differ in shape",
                        .where = where,
                        .why = both(),
                        .fix = padded ? "Give samples that differ in their first dimension alone."
                                      : "Give samples of one shape, or pad them with Pad{}."});
    }
  }
}

}  // namespace frugal::detail
