// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, D dimensions of an embedding, ... whatever one view has.
#pragma once

#include <ATen/ATen.h>

#include <utility>

#include <frugal/core/run/loss.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/losses/views.hpp>

namespace frugal {

/// Triplet margin loss, torch.nn.TripletMarginLoss: max(0, d(anchor, positive) - d(anchor, negative) + margin), the
/// mean over the samples, and weighted by their number, so that micro-batches add up to one batch.
///
/// Data are [B, 3, ...]: anchor, positive and negative of each sample; a target is not read. The module gets
/// [3 B, ...], the three of a sample one after the other, and returns [3 B, D]. `Loss::output` is [B, 3, D]. Embeddings
/// of 16 bits are widened. Throws ShapeError, with the shape, for other data and outputs.
struct Triplet {
  double margin = 1.0;  ///< above 0
  double p = 2.0;       ///< the norm of the distance, above 0
  double eps = 1e-6;    ///< is added to each difference
  /// Takes the negative's distance from the positive, where it is smaller than from the anchor.
  bool swap = false;

  template <class Module, class B = Batch>
    requires detail::TensorData<B> || detail::ReadsBatch<Module, B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor output = detail::embed_views(module, batch, 3, "Triplet");
    return {.value = of(output),
            .weight = static_cast<double>(output.size(0)),
            .output = std::move(output)};
  }

 private:
  at::Tensor of(at::Tensor const& views_B3D) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/losses/triplet.ipp>
#endif
