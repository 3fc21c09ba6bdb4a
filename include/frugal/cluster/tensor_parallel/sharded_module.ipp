// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/tensor_parallel/sharded_module.hpp>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE ShardedModule::ShardedModule(Communicator& group, Parameters const& parameters,
                                           bool gives)
    : group_(group), gives_(gives), kept_(static_cast<std::size_t>(group.size())) {
  parts_.parameters = parameters;
  for (at::Tensor const& each : parameters.tensors) {
    parts_.of.push_back(part_of(each));
    if (!parts_.of.back() && each.requires_grad()) {
      waits_for_gradient_.push_back(parts_.of.size() - 1);
    }
    if (!parts_.of.back() ||
        parts_.of.back()->count * group.size() == parts_.of.back()->whole_count())
      continue;
    throw ModuleError({.what = "a shard of " + parts_.of.back()->text() + " elements",
                       .where = "Replicate, with a tensor group of " +
                                std::to_string(group.size()) + " processes",
                       .why = "the layer was made for a group of another size",
                       .fix = "Make all layers with the `tensor` of the Grid whose `data` "
                              "Replicate has."});
  }
}

FRUGAL_INLINE at::Tensor ShardedModule::whole(at::Tensor const& mine, TensorPart const& which,
                                              bool side_by_side) {
  if (!gives_) return {};
  constexpr char const* what = "a shard of the run's state";
  at::Tensor const own = in_memory_order(mine.detach()).cpu();
  int const keeper = side_by_side ? next_keeper(static_cast<std::int64_t>(own.nbytes())) : 0;
  if (group_.rank() != keeper) {
    group_.send(own, keeper, what);
    return {};
  }
  at::Tensor whole = at::empty_strided(which.sizes, which.strides, own.options());
  at::Tensor const elements = in_memory_order(whole);
  for (int rank = 0; rank < group_.size(); ++rank) {
    at::Tensor const part = elements.narrow(0, rank * which.count, which.count);
    if (rank == keeper) {
      part.copy_(own);
    } else {
      group_.receive(part, rank, what);
    }
  }
  return whole;
}

FRUGAL_INLINE Parameters ShardedModule::counted(Parameters const& updated) const {
  if (group_.rank() == 0) return updated;
  Parameters own = updated;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!parts_.of[i]) own.tensors[i] = own.tensors[i].detach();  // it has no gradient
  }
  return own;
}

FRUGAL_INLINE ShardedModule::Verdict ShardedModule::agree(Verdict const& mine) const {
  at::Tensor const own = at::empty({3}, at::kDouble);
  auto* const values = own.mutable_data_ptr<double>();
  values[0] = mine.preempts ? 1 : 0;
  values[1] = mine.fails ? 1 : 0;
  values[2] = mine.loss;
  at::Tensor const rows = group_.gather(own, "the verdicts of a step", /*after_tensors=*/true);
  auto const* const all = rows.const_data_ptr<double>();
  Verdict verdict{.loss = all[2]};
  for (int rank = 0; rank < group_.size(); ++rank) {
    double const* const row = all + 3 * rank;
    verdict.preempts = verdict.preempts || row[0] != 0;
    verdict.fails = verdict.fails || row[1] != 0;
    if (row[2] == all[2] || (std::isnan(row[2]) && std::isnan(all[2]))) continue;
    throw ModuleError(
        {.what = "the loss of rank " + std::to_string(group_.rank_in_world(rank)) + " is " +
                 std::to_string(row[2]) + ", and that of rank " +
                 std::to_string(group_.rank_in_world(0)) + " " + std::to_string(all[2]),
         .where = "a step of a module that is cut over processes",
         .why = "the ranks of one copy of the module must come to the same bits of one output",
         .fix = "Give the objective whole tensors (ColumnOptions::gather), and use ShardedDropout "
                "for dropout of a shard."});
  }
  return verdict;
}

FRUGAL_INLINE void ShardedModule::require_same_copies(torch::nn::Module& module,
                                                      char const* what) const {
  std::vector<std::pair<std::string, std::string>> values;
  visit_all_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    if (!part_of(tensor)) {
      values.emplace_back("'" + name + "' of " + what + ", which is not cut,", hash_of(tensor));
    }
  });
  require_same_run(group_, values);
}

FRUGAL_INLINE void ShardedModule::require_different_shards() const {
  std::string mine;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts_.of.size(); ++i) {
    if (!parts_.of[i]) continue;
    at::Tensor const shard = parts_.parameters.tensors[i].detach();
    bool const is_constant = shard.numel() < 2 || shard.eq(shard.flatten()[0]).all().item<bool>();
    names.push_back(parts_.parameters.names[i]);
    mine += is_constant ? std::string(hash_size, '-') : hash_of(shard);
  }
  std::vector<std::string> const all = gather_texts(group_, mine, "the comparison of shards");
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string const first = all.front().substr(hash_size * i, hash_size);
    bool const is_same = std::ranges::all_of(all, [&](std::string const& each) {
      return each.compare(hash_size * i, hash_size, first) == 0;
    });
    if (!is_same || first.front() == '-') continue;
    throw ModuleError(
        {.what = "the shards of '" + names[i] + "' are the same numbers in all " +
                 std::to_string(all.size()) + " ranks",
         .where = "the beginning of a fit of a module that is cut over processes",
         .why = "each rank has drawn its shard from an equal generator, so the layer has each "
                "column, row or head " +
                std::to_string(all.size()) + " times, and they stay equal",
         .fix = "Leave the weights as the layer draws them, or draw the whole and cut it: "
                "`fill_whole(parameter, [](at::Tensor& whole) { torch::nn::init::normal_(whole, 0, "
                "0.02); })` for each parameter, with the same seed in all ranks."});
  }
}

FRUGAL_INLINE void ShardedModule::require_same_gradients() {
  if (waits_for_gradient_.empty()) return;
  std::string mine;
  for (std::size_t const i : waits_for_gradient_) {
    at::Tensor const& gradient = parts_.parameters.tensors[i].grad();
    bool const is_zero = !gradient.defined() || !gradient.ne(0).any().item<bool>();
    mine += is_zero ? std::string(hash_size, '-') : hash_of(gradient);
  }
  std::vector<std::string> const all = gather_texts(group_, mine, "the comparison of gradients");
  std::vector<std::size_t> still;
  for (std::size_t k = 0; k < waits_for_gradient_.size(); ++k) {
    std::size_t const i = waits_for_gradient_[k];
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank].compare(hash_size * k, hash_size, all.front(), hash_size * k, hash_size) == 0)
        continue;
      throw ModuleError(
          {.what = "the gradient of '" + parts_.parameters.names[i] + "' differs between rank " +
                   std::to_string(group_.rank_in_world(static_cast<int>(rank))) + " and rank " +
                   std::to_string(group_.rank_in_world(0)),
           .where = "its first step with a gradient, of a module that is cut over processes",
           .why = "all of them have this parameter, and use it on their shards, on other data or "
                  "with other random numbers",
           .fix = "Use `copy_to_group(parameter, group)` where it is used on a shard, and "
                  "ShardedDropout for dropout of a shard."});
    }
    if (all.front()[hash_size * k] == '-') still.push_back(i);
  }
  waits_for_gradient_ = std::move(still);
}

}  // namespace frugal::detail
