// SPDX-License-Identifier: Apache-2.0
// Recipes "recompute" and "half", for activations. frugal's mechanism is the feature itself, so the
// hand-written loops use it too: the comparison is between a policy that finds the segments, and a
// forward pass that has them written into it.
#pragma once

#include "job.hpp"

namespace frugal_bench {

/// Recipe "recompute": recomputes the first half of a list of four layers in backward.
using RecomputeTrainer =
    fr::Trainer<Deep, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::Recompute<fr::Segments<2>>>;
/// Recipe "half": tensors saved for backward are stored as BF16.
using HalfTrainer =
    fr::Trainer<Deep, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::Activations<fr::BF16>>;

inline void rival_recompute(Deep& net, fr::TensorDataset& source, std::uint64_t steps) {
  at::Tensor const one = torch::ones({});
  auto& layers = net->layers;
  auto const first_half = [a = layers[0], b = layers[1]](at::Tensor const& x) mutable {
    return DeepImpl::Layer{}(b, DeepImpl::Layer{}(a, x));
  };
  auto const pass = [&](fr::Batch const& batch) {
    at::Tensor x = torch::relu(net->first(batch.data));
    x = fr::recompute(first_half, std::move(x));
    x = DeepImpl::Layer{}(layers[3], DeepImpl::Layer{}(layers[2], x));
    at::Tensor const loss = at::cross_entropy_loss(net->head(x), batch.target);
    loss.backward(one);
  };
  rival_loop(net, source, steps, pass, plain_update, nothing_after);
}

inline void rival_half(Deep& net, fr::TensorDataset& source, std::uint64_t steps) {
  at::Tensor const one = torch::ones({});
  auto const pass = [&](fr::Batch const& batch) {
    at::Tensor const loss = [&] {
      fr::detail::Packing<fr::detail::PackedAs<fr::BF16>> packing;
      fr::detail::SavedTensorsScope const scope(&packing);
      return at::cross_entropy_loss(net->forward(batch.data), batch.target);
    }();
    loss.backward(one);
  };
  rival_loop(net, source, steps, pass, plain_update, nothing_after);
}

}  // namespace frugal_bench
