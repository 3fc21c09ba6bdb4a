// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/cut.hpp>

#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/inline.hpp>

#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor CutPlace::summed(at::Tensor const& values, std::int64_t size) const {
  return values.movedim(dim, 0)
      .reshape({-1, size, after, values.numel() / values.size(dim)})
      .sum(at::IntArrayRef{0, 2, 3});
}

FRUGAL_INLINE at::Tensor CutPlace::indices(at::Tensor const& keep) const {
  at::Tensor const place = at::arange(tensor.size(dim), at::kLong);
  at::Tensor const position = at::div(place, after, "floor").remainder(keep.size(0));
  return at::nonzero(keep.index_select(0, position)).view({-1}).to(tensor.device());
}

FRUGAL_INLINE std::string CutGroup::name() const {
  std::string text;
  for (CutPlace const& each : places) {
    if (each.makes) text += (text.empty() ? "" : ", ") + each.name;
  }
  return text;
}

FRUGAL_INLINE void sync_options(torch::nn::Module& module) {
  module.apply([](torch::nn::Module& part) {
    auto const convolution = [](auto* layer) {
      if (layer == nullptr || !layer->weight.defined()) return;
      auto& options = layer->options;
      std::int64_t const first = layer->weight.size(0);
      std::int64_t const second = layer->weight.size(1);
      // Depthwise layers keep their number of filters per channel.
      if (options.groups() > 1 && options.groups() == options.in_channels() &&
          !options.transposed()) {
        std::int64_t const filters = options.out_channels() / options.in_channels();
        options.in_channels(first / filters).out_channels(first).groups(first / filters);
        return;
      }
      std::int64_t const in = options.transposed() ? first : second * options.groups();
      std::int64_t const out = options.transposed() ? second * options.groups() : first;
      options.in_channels(in).out_channels(out);
    };
    convolution(dynamic_cast<torch::nn::Conv1dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::Conv2dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::Conv3dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::ConvTranspose1dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::ConvTranspose2dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::ConvTranspose3dImpl*>(&part));
    if (auto* const linear = dynamic_cast<torch::nn::LinearImpl*>(&part)) {
      linear->options.in_features(linear->weight.size(1)).out_features(linear->weight.size(0));
    }
    if (auto* const embedding = dynamic_cast<torch::nn::EmbeddingImpl*>(&part)) {
      embedding->options.embedding_dim(embedding->weight.size(1));
    }
  });
  each_batch_norm(module, [](auto& layer) {
    at::Tensor const& any = layer.weight.defined() ? layer.weight : layer.running_mean;
    if (any.defined()) layer.options.num_features(any.size(0));
  });
}

FRUGAL_INLINE void KeptTensors::keep(at::Tensor const& tensor) {
  kept_.emplace_back(tensor, tensor.detach());
}

FRUGAL_INLINE void KeptTensors::put_back() {
  // In the opposite order: a tensor may have been cut along two dimensions.
  for (auto each = kept_.rbegin(); each != kept_.rend(); ++each) each->first.set_data(each->second);
  kept_.clear();
}

FRUGAL_INLINE void mask_group(CutGroup const& group, at::Tensor const& keep, KeptTensors& kept) {
  at::NoGradGuard const no_gradients;
  for (CutPlace const& each : group.places) {
    if (!each.takes) continue;
    at::Tensor const masked =
        each.tensor.detach().clone().index_fill_(each.dim, each.indices(keep.logical_not()), 0);
    kept.keep(each.tensor);
    at::Tensor(each.tensor).set_data(masked);
  }
}

FRUGAL_INLINE void cut_group(CutGroup const& group, at::Tensor const& keep, KeptTensors& kept) {
  at::NoGradGuard const no_gradients;
  for (CutPlace const& each : group.places) {
    at::Tensor const cut = each.tensor.detach().index_select(each.dim, each.indices(keep));
    kept.keep(each.tensor);
    at::Tensor(each.tensor).set_data(cut);
  }
}

}  // namespace frugal::detail
