// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/source/fields.hpp>

namespace frugal {

namespace detail {

/// A module, or what holds one, that reads batches itself: `forward_batch(batch)`.
template <class Module, class B>
concept ReadsBatch = requires(Module& module, B const& batch) { module.forward_batch(batch); } ||
                     requires(Module& module, B const& batch) { module->forward_batch(batch); };

}  // namespace detail

/// The output of a module for a batch: of its `forward_batch(batch)`, if it has one, which takes
/// what it needs, such as `batch.field("attention_mask")`; or else of `forward(batch_data(batch))`.
/// Objectives and predict call this.
template <class Module, class B>
  requires HasData<B> || detail::ReadsBatch<Module, B>
decltype(auto) forward_batch(Module& module, B const& batch) {
  if constexpr (requires { module.forward_batch(batch); }) {
    return module.forward_batch(batch);
  } else if constexpr (detail::ReadsBatch<Module, B>) {
    return module->forward_batch(batch);
  } else {
    return forward(module, batch_data(batch));
  }
}

}  // namespace frugal
