// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/fold_batch_norm.hpp>

#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor FoldedIntoRows::forward(at::Tensor const& rows) {
  if (rows.dim() == 2) return rows;
  throw ShapeError(
      {.what = "a BatchNorm1d that was folded into a Linear normalizes dimension 1 of " +
               shape_text(rows),
       .where = "fold_batch_norm",
       .why = "it was folded along the Linear's outputs, which are the last dimension",
       .fix = "Put the Linear and its BatchNorm1d into a module with a forward of its own, where "
              "fold_batch_norm does not look, and fold the trained module again."});
}

FRUGAL_INLINE int fold_in_sequence(torch::nn::SequentialImpl& layers,
                                   TensorPlaceCounts const& places) {
  std::vector<std::string> const names = layers.named_children().keys();
  int folded = 0;
  torch::nn::AnyModule* before = nullptr;
  std::size_t at = 0;
  for (torch::nn::AnyModule& layer : layers) {
    std::string const& name = names[at++];
    using torch::nn::BatchNorm1dImpl, torch::nn::BatchNorm2dImpl, torch::nn::Conv2dImpl,
        torch::nn::LinearImpl;
    auto const replace = [&](auto nothing) {
      nothing->train(layer.ptr()->is_training());
      layer = torch::nn::AnyModule(nothing);
      layers.replace_module(name, nothing);
      ++folded;
    };
    if (before != nullptr) {
      torch::nn::Module& first = *before->ptr();
      if (fold_pair<Conv2dImpl, BatchNorm2dImpl>(first, *layer.ptr(), places)) {
        replace(std::make_shared<torch::nn::IdentityImpl>());
      } else if (fold_pair<LinearImpl, BatchNorm1dImpl>(first, *layer.ptr(), places)) {
        replace(std::make_shared<FoldedIntoRows>());
      }
    }
    before = &layer;
  }
  return folded;
}

}  // namespace frugal::detail
