// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/pipeline.hpp>

#include <frugal/inline.hpp>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <string>
#include <unordered_map>

namespace frugal {

FRUGAL_INLINE void gather_stages(torch::nn::Module& divided, torch::nn::Module& whole) {
  auto const layers = detail::LayerList::of(divided).divided();
  if (!layers) {
    throw ModuleError({.what = "gather_stages gets a module that is whole",
                       .where = "gather_stages",
                       .why = "Pipeline divides a module when its first fit begins",
                       .fix = "Call it after fit, with the module that was trained."});
  }
  auto const tensors_of = [](torch::nn::Module& module) {
    std::unordered_map<std::string, at::Tensor> all;
    for (auto const& item : module.named_parameters()) all.emplace(item.key(), item.value());
    for (auto const& item : module.named_buffers()) all.emplace(item.key(), item.value());
    return all;
  };
  Communicator& all = layers->processes();
  auto const own = tensors_of(divided), into = tensors_of(whole);
  std::string missing;
  for (auto const& part : layers->parts()) {
    auto const place = into.find(part.name);
    bool const fits = place != into.end() && place->second.sizes() == part.sizes;
    if (!fits) missing += (missing.empty() ? "" : ", ") + part.name;
  }
  if (!missing.empty()) {
    throw ModuleError(
        {.what = "the whole module has not the tensors of the divided one: " + missing,
         .where = "gather_stages",
         .why = "each is copied into the one of its name and shape",
         .fix = "Make both by the same code, in all processes."});
  }
  at::NoGradGuard const no_gradients;
  for (auto const& part : layers->parts()) {
    int const rank =
        part.stage == detail::DividedLayers::every_process ? 0 : layers->rank_of(part.stage);
    if (all.rank() == 0 && rank == 0) {
      into.at(part.name).copy_(own.at(part.name));
    } else if (all.rank() == 0) {
      at::Tensor const place = at::empty(part.sizes, at::TensorOptions(part.type));
      all.complete_link(all.start_receive(place, rank, 0), "the weights of a stage");
      into.at(part.name).copy_(place);
    } else if (all.rank() == rank) {
      at::Tensor const sent = own.at(part.name).detach().cpu().contiguous();
      all.complete_link(all.start_send(sent, 0, 0), "the weights of a stage");
    }
  }
}

}  // namespace frugal
