// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, D dimensions of an embedding, ... whatever one view has.
#pragma once

#include <ATen/ATen.h>

#include <utility>

#include <frugal/core/run/loss.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/losses/views.hpp>

namespace frugal {

/// NT-Xent, the contrastive loss of SimCLR (InfoNCE of two views): each of 2 B views has to find the other view of its
/// sample among the other 2 B - 1, by cosine similarity over `temperature`. The mean over all views.
///
/// Data are [B, 2, ...]: two views of each sample; a target is not read. The module gets [2 B, ...], the two of a
/// sample one after the other, and returns [2 B, D], which need not be normalized. `Loss::output` is [B, 2, D].
/// Similarities are computed in single precision at least, under autocast too.
///
/// The negatives of a view are those of its micro-batch and process. So the mean over micro-batches is not the loss of
/// their union: a window of Accumulate<N> descends the mean of N losses of small batches, weighted by their samples,
/// and not that of one large batch; with Replicate each process has negatives of its own. A ragged last batch has
/// fewer negatives and a smaller loss, of one sample 0: read with drop_last. Throws ShapeError, with the shape, for
/// other data and outputs.
///
/// Source  Chen et al., "A simple framework for contrastive learning of visual representations" (2020).
struct Contrastive {
  double temperature = 0.5;  ///< above 0

  template <class Module, class B = Batch>
    requires detail::TensorData<B> || detail::ReadsBatch<Module, B>
  Loss operator()(Module& module, B const& batch) const {
    at::Tensor output = detail::embed_views(module, batch, 2, "Contrastive");
    return {.value = of(output),
            .weight = static_cast<double>(output.size(0)),
            .output = std::move(output)};
  }

 private:
  at::Tensor of(at::Tensor const& views_B2D) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/losses/contrastive.ipp>
#endif
