// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <frugal/error.hpp>

namespace frugal::detail {

/// `max_norm` changes rows of the weight in the forward pass, those of a process's own samples.
inline void refuse_renormalised(torch::nn::Module& module, char const* where) {
  for (auto const& each : module.modules()) {
    auto const* rows = each->as<torch::nn::EmbeddingImpl>();
    auto const* bags = each->as<torch::nn::EmbeddingBagImpl>();
    if (!(rows != nullptr && rows->options.max_norm()) &&
        !(bags != nullptr && bags->options.max_norm()))
      continue;
    throw ModuleError({.what = "an Embedding has max_norm",
                       .where = where,
                       .why = "its forward pass changes the rows of the samples that one process "
                              "has, so the weights of processes would differ",
                       .fix = "Leave max_norm out, or renormalise the rows in the objective."});
  }
}

}  // namespace frugal::detail
