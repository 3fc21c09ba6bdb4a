// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, V views of each, D dimensions of an embedding, ... whatever one view has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/source/fields.hpp>

namespace frugal::detail {

/// A batch whose data are one tensor.
template <class B>
concept TensorData = HasData<B> && requires(B const& batch) {
  requires IsTensor<std::remove_cvref_t<decltype(batch_data(batch))>>;
};

/// [B * V, ...] of data [B, V, ...]; ShapeError if there are not `views` of them.
at::Tensor views_in_rows(at::Tensor const& data, std::int64_t views, char const* objective);
/// [B, V, D], in single precision at least, of the module's output; ShapeError if it is something else.
at::Tensor embeddings_of(at::Tensor const& output, std::int64_t views, char const* objective);

/// The module's embeddings [B, V, D] of V views of each sample. The module sees all views at once, as samples
/// [B * V, ...], and returns [B * V, D]; one with forward_batch() returns [B, V, D] or [B * V, D] itself.
template <class Module, class B>
at::Tensor embed_views(Module& module, B const& batch, std::int64_t views, char const* objective) {
  if constexpr (ReadsBatch<Module, B>) {
    return embeddings_of(forward_batch(module, batch), views, objective);
  } else {
    return embeddings_of(forward(module, views_in_rows(batch_data(batch), views, objective)), views,
                         objective);
  }
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/losses/views.ipp>
#endif
