// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/losses/views.hpp>

#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor views_in_rows(at::Tensor const& data, std::int64_t views,
                                       char const* objective) {
  if (data.dim() >= 2 && data.size(1) == views) return data.flatten(0, 1);
  std::string const count = std::to_string(views);
  throw ShapeError({.what = "the batch's data are not " + count + " views of each sample",
                    .where = objective,
                    .why = "they are " + shape_text(data),
                    .fix = "Give data [B, " + count +
                           ", ...], such as torch::stack of the views "
                           "along dimension 1."});
}

FRUGAL_INLINE at::Tensor embeddings_of(at::Tensor const& output, std::int64_t views,
                                       char const* objective) {
  if (output.is_floating_point()) {
    if (output.dim() == 3 && output.size(1) == views) return at_least_float(output);
    if (output.dim() == 2 && output.size(0) % views == 0) {
      return at_least_float(output).reshape({output.size(0) / views, views, output.size(1)});
    }
  }
  throw ShapeError(
      {.what = "the module's output is not an embedding for each view",
       .where = objective,
       .why = "it is " + shape_text(output) + ", of " + std::to_string(views) + " views per sample",
       .fix = "Return [samples, D] for the samples that the module gets, of a "
              "floating-point type."});
}

}  // namespace frugal::detail
