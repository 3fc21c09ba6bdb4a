// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/agreement/same_replicas.hpp>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/inline.hpp>

#include <torch/nn/modules/embedding.h>

namespace frugal::detail {

FRUGAL_INLINE void refuse_renormalized(torch::nn::Module& module, char const* where) {
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
                       .fix = "Leave max_norm out, or renormalize the rows in the objective."});
  }
}

FRUGAL_INLINE CommonMoments SameReplicas::of_optimizer(RunState const& run) {
  return {.name = "optimizer's moments", .write = [&run](StateWriter& writer) {
            run.links.policies().persist_one(writer, kinds::optimizer::name);
          }};
}

FRUGAL_INLINE void SameReplicas::compare(Communicator& all, RunState const& run,
                                         std::uint64_t saved, CommonMoments const& moments) {
  TensorHash weights, others;
  for (at::Tensor const& each : run.parameters.tensors) {
    if (!run.together.held_parts || !run.together.held_parts(each)) weights.add(each);
  }
  if (moments.write) {
    StateDict state;
    StateWriter writer(state, CopyTarget::live);
    moments.write(writer);
    for (auto const& [path, tensor] : state.tensors) {
      others.add(path);
      others.add(tensor);
    }
  }
  std::string const mine = hex_of(weights.digest()) + hex_of(others.digest());
  std::vector<std::string> const texts = gather_texts(all, mine, "the comparison of the copies");
  std::size_t const half = mine.size() / 2;
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts.front()) continue;
    bool const by_weights = texts[rank].compare(0, half, texts.front(), 0, half) != 0;
    refuse(all, rank, by_weights ? "weights" : moments.name, run.counters().step, saved);
  }
  begin(run);
}

FRUGAL_INLINE void SameReplicas::refuse(Communicator const& all, std::size_t rank,
                                        std::string const& what, std::uint64_t now,
                                        std::uint64_t saved) const {
  auto const named = [&](std::size_t of) {
    return "rank " + std::to_string(all.rank_in_world(static_cast<int>(of)));
  };
  throw ClusterError(
      {.what = "the " + what + " of " + named(rank) + " and " + named(0) + " differ since step " +
               std::to_string(step_),
       .where = all.hosts()[rank] + ", at step " + std::to_string(now),
       .why = "they were the same at step " + std::to_string(step_) +
              "; since then a fault of memory, or code that acts in one process alone, has changed "
              "one of them, and the checkpoint of step " +
              std::to_string(saved) + " has what the first process had",
       .fix = "Go on from a checkpoint of step " + std::to_string(step_) +
              " or before (Checkpoint::from, OnNewer::Remove), and look for what is done in one "
              "process alone, or for a machine with memory errors."});
}

}  // namespace frugal::detail
