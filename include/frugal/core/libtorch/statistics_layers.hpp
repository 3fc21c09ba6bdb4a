// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <frugal/core/libtorch/fixed_tensors.hpp>

namespace frugal::detail {

/// A layer with running statistics: one without children that has a buffer `running_mean`, as BatchNorm has
/// and InstanceNorm that tracks them.
struct StatisticsLayer {
  std::string name{};
  std::shared_ptr<torch::nn::Module> module{};
  std::vector<at::Tensor> parameters{};
  std::vector<at::Tensor> statistics{};  ///< mean, variance and, if it counts, the batches
};

/// By which name patterns select a layer.
std::string running_mean_of(StatisticsLayer const& layer);

/// Whether no run trains the layer: all of its parameters hold still, or all of its statistics.
/// `still(tensor)` says which tensors do.
template <class Still>
bool is_frozen(StatisticsLayer const& layer, Still&& still) {
  bool const by_parameters =
      !layer.parameters.empty() && std::ranges::all_of(layer.parameters, still);
  return by_parameters || std::ranges::all_of(layer.statistics, still);
}
bool is_frozen(StatisticsLayer const& layer);

/// Without statistics if the module is no such layer.
StatisticsLayer statistics_of(torch::nn::Module const& module);

/// Those of a module, itself included.
std::vector<StatisticsLayer> statistics_layers(torch::nn::Module& root);

/// A module's layers without parameters have nothing else that says whether they are trained: fixes
/// the statistics of those whose running mean a predicate selects by name.
template <class Selects>
void fix_statistics(torch::nn::Module& root, Selects&& selects) {
  for (StatisticsLayer const& each : statistics_layers(root)) {
    if (!each.parameters.empty() || !selects(running_mean_of(each))) continue;
    for (at::Tensor const& tensor : each.statistics) keep_fixed(tensor);
  }
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/statistics_layers.ipp>
#endif
