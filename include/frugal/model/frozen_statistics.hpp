// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <memory>
#include <string>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// BatchNorm layers whose statistics must not change, whatever calls train() on the module.
class FrozenStatistics {
 public:
  /// Those whose running mean a name predicate selects.
  template <class Selects>
  void find(torch::nn::Module& module, Selects&& selects) {
    layers_.clear();
    for (auto const& item : module.named_modules("", /*include_self=*/false)) {
      torch::nn::Module* const layer = item.value().get();
      bool const normalises = dynamic_cast<torch::nn::BatchNorm1dImpl*>(layer) != nullptr ||
                              dynamic_cast<torch::nn::BatchNorm2dImpl*>(layer) != nullptr ||
                              dynamic_cast<torch::nn::BatchNorm3dImpl*>(layer) != nullptr;
      if (normalises && selects(item.key() + ".running_mean")) layers_.push_back(item.value());
    }
  }

  /// Before each forward pass in training: evaluation mode normalises by the kept statistics.
  void hold() const {
    for (auto const& layer : layers_) layer->train(false);
  }
  void clear() { layers_.clear(); }
  bool empty() const { return layers_.empty(); }

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> layers_;
};

}  // namespace frugal::detail
