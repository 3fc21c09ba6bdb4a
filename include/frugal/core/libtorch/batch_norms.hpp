// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/batchnorm.h>

namespace frugal::detail {

/// Calls `use(layer)` for every BatchNorm layer of a module, itself included.
template <class Use>
void each_batch_norm(torch::nn::Module& module, Use&& use) {
  module.apply([&](torch::nn::Module& part) {
    auto const look = [&](auto* layer) {
      if (layer != nullptr) use(*layer);
    };
    look(dynamic_cast<torch::nn::BatchNorm1dImpl*>(&part));
    look(dynamic_cast<torch::nn::BatchNorm2dImpl*>(&part));
    look(dynamic_cast<torch::nn::BatchNorm3dImpl*>(&part));
  });
}

}  // namespace frugal::detail
