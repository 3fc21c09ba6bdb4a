// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/inline.hpp>

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
FRUGAL_INLINE std::string running_mean_of(StatisticsLayer const& layer) {
  return layer.name.empty() ? "running_mean" : layer.name + ".running_mean";
}

/// Whether no run trains the layer: all of its parameters hold still, or all of its statistics.
/// `still(tensor)` says which tensors do.
template <class Still>
bool is_frozen(StatisticsLayer const& layer, Still&& still) {
  bool const by_parameters =
      !layer.parameters.empty() && std::ranges::all_of(layer.parameters, still);
  return by_parameters || std::ranges::all_of(layer.statistics, still);
}
FRUGAL_INLINE bool is_frozen(StatisticsLayer const& layer) { return is_frozen(layer, is_fixed); }

/// Without statistics if the module is no such layer.
FRUGAL_INLINE StatisticsLayer statistics_of(torch::nn::Module const& module) {
  StatisticsLayer found;
  auto const buffers = module.named_buffers(/*recurse=*/false);
  auto const* const mean = buffers.find("running_mean");
  if (mean == nullptr || !mean->defined() || !module.children().empty()) return found;
  for (char const* name : {"running_mean", "running_var", "num_batches_tracked"}) {
    auto const* const each = buffers.find(name);
    if (each != nullptr && each->defined()) found.statistics.push_back(*each);
  }
  for (at::Tensor const& each : module.parameters(/*recurse=*/false)) {
    if (each.defined()) found.parameters.push_back(each);
  }
  return found;
}

/// Those of a module, itself included.
FRUGAL_INLINE std::vector<StatisticsLayer> statistics_layers(torch::nn::Module& root) {
  std::vector<StatisticsLayer> layers;
  auto const look = [&](std::string const& name, std::shared_ptr<torch::nn::Module> part) {
    StatisticsLayer found = statistics_of(*part);
    if (found.statistics.empty()) return;
    found.name = name;
    found.module = std::move(part);
    layers.push_back(std::move(found));
  };
  // The root may be a value, which no pointer owns.
  look("", std::shared_ptr<torch::nn::Module>(std::shared_ptr<void>(), &root));
  for (auto const& item : root.named_modules("", /*include_self=*/false)) {
    look(item.key(), item.value());
  }
  return layers;
}

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
