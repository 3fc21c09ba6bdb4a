// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <optional>
#include <string>
#include <vector>

namespace frugal::detail {

/// The running statistics of a BatchNorm layer, whichever class computes them.
struct BatchNormBuffers {
  at::Tensor mean, variance;
  at::Tensor tracked;                ///< calls in training
  std::optional<double> momentum{};  ///< nothing: the mean of all calls
};

/// A module whose forward pass in training changes buffers although none of its layers is one of LibTorch's
/// (StepModule).
class ChangesBuffers {
 public:
  ChangesBuffers() = default;
  ChangesBuffers(ChangesBuffers const&) = default;
  ChangesBuffers& operator=(ChangesBuffers const&) = default;
  virtual ~ChangesBuffers() = default;

  /// Those of its BatchNorm layers.
  virtual std::vector<BatchNormBuffers> changed_batch_norms() const = 0;
  /// The name of a buffer that it changes otherwise; empty if there is none.
  virtual std::string other_changed_buffer() const = 0;
};

/// Whether a module changes statistics of BatchNorm that no layer of LibTorch holds.
inline bool has_compiled_batch_norms(torch::nn::Module const& module) {
  auto const* const changes = dynamic_cast<ChangesBuffers const*>(&module);
  return changes != nullptr && !changes->changed_batch_norms().empty();
}

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
