// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/error.hpp>
#include <frugal/model/save_weights.hpp>

namespace frugal {

namespace detail {

/// The tensor of which each rank of a group has an equal part; all call it.
inline at::Tensor whole_of(Communicator& group, at::Tensor const& mine, TensorPart const& part) {
  if (part.count * group.size() != part.whole_count()) {
    throw ModuleError({.what = "a shard of " + part.text() + " elements",
                       .where = "a group of " + std::to_string(group.size()) + " processes",
                       .why = "the module was made for a group of another size",
                       .fix = "Give the group that the module's layers have (Grid::tensor)."});
  }
  at::NoGradGuard const no_gradients;
  at::Tensor own = in_memory_order(mine.detach());
  at::Tensor whole =
      at::empty_strided(part.sizes, part.strides, mine.options().requires_grad(false));
  at::Tensor elements = in_memory_order(whole);
  group.collect(elements, own, "the shards of a weight");
  return whole;
}

}  // namespace detail

/// A module's parameters and buffers, those that are cut made whole, in every rank. All ranks of the
/// tensor group call it.
///
/// Cost    memory for the whole module in every rank.
/// Errors  ModuleError for a group of another size; ClusterError.
template <class Module>
NamedTensors whole_state(Module& module, Communicator& group) {
  NamedTensors all;
  detail::visit_all_tensors(
      base_module(module), [&](std::string const& name, at::Tensor const& tensor) {
        auto const part = part_of(tensor);
        all.emplace(name, part ? detail::whole_of(group, tensor, *part)
                               : tensor.detach().clone(at::MemoryFormat::Preserve));
      });
  return all;
}

/// Copies whole tensors into a module: of those that are cut, this rank's part. No exchange.
///
/// Errors  StateError for a name that is missing on one of both sides, or for another shape. The module
///         is then unchanged.
template <class Module>
void load_whole_state(Module& module, NamedTensors const& whole) {
  auto const refuse = [](std::string why) {
    throw StateError({.what = "these weights do not fit the module",
                      .where = "load_whole_state",
                      .why = std::move(why),
                      .fix = "Load the whole tensors of this module, under its names."});
  };
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  NamedTensors unexpected = whole;
  detail::visit_all_tensors(base_module(module),
                            [&](std::string const& name, at::Tensor const& tensor) {
                              auto const found = whole.find(name);
                              if (found == whole.end())
                                return refuse("there is no tensor '" + name + "'");
                              unexpected.erase(name);
                              if (found->second.sizes() != detail::whole_sizes(tensor)) {
                                return refuse("'" + name + "' has another shape there");
                              }
                              pairs.emplace_back(tensor, found->second);
                            });
  if (!unexpected.empty()) {
    refuse("the module has no tensor '" + unexpected.begin()->first + "'");
  }
  at::NoGradGuard const no_gradients;
  for (auto& [tensor, from] : pairs) tensor.copy_(detail::own_part(from, tensor));
}

/// Sets a parameter to this rank's part of what `fill(whole)` makes of a tensor of zeros with the whole
/// shape: for initial values of your own. All ranks of the tensor group call it with equal generators, and
/// draw the same as one process. `torch::nn::init` on the parameter itself draws the same shard in each.
///
///     for (at::Tensor const& each : net->parameters())
///       fr::fill_whole(each, [](at::Tensor& whole) { torch::nn::init::normal_(whole, 0, 0.02); });
///
/// Cost    memory for the whole parameter.
/// Errors  StateError if `fill` gives it another shape.
template <class Fill>
void fill_whole(at::Tensor const& parameter, Fill&& fill) {
  at::NoGradGuard const no_gradients;
  std::vector<std::int64_t> const sizes = detail::whole_sizes(parameter);
  at::Tensor whole = at::zeros(sizes, parameter.options().requires_grad(false));
  fill(whole);
  if (whole.sizes() != at::IntArrayRef(sizes)) {
    throw StateError({.what = "the initial value of a parameter has another shape than it",
                      .where = "fill_whole",
                      .why = "it has the shape " + detail::shape_text(whole),
                      .fix = "Change the tensor that `fill` gets in place."});
  }
  at::Tensor own = parameter;
  own.copy_(detail::own_part(whole, parameter));
}

/// save_weights() of a module that is cut over a group: the first rank writes whole tensors, which one
/// process can load. All ranks of the group call it; the result of the others is empty. Of a Grid, the
/// groups with another data rank than 0 leave it out.
template <class Module>
SavedWeights save_weights(Module& module, std::filesystem::path const& folder, Communicator& group,
                          SaveRules const& rules = {}) {
  NamedTensors const whole = whole_state(module, group);
  if (group.rank() != 0) return {};
  return detail::WeightsWriter(base_module(module), folder, rules, &whole).write();
}

}  // namespace frugal
