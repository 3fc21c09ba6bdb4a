// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/statistics_layers.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string running_mean_of(StatisticsLayer const& layer) {
  return layer.name.empty() ? "running_mean" : layer.name + ".running_mean";
}

FRUGAL_INLINE bool is_frozen(StatisticsLayer const& layer) { return is_frozen(layer, is_fixed); }

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

}  // namespace frugal::detail
