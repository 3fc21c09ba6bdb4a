// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/tensors/exact_sum.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal {

/// The processes that hold the shards of one module (Grid::tensor).
using TensorGroup = std::shared_ptr<Communicator>;

namespace detail {

inline constexpr char const* sum_of_activations = "a sum of activations";

/// The sum of a tensor over a group: the same bits in every rank and with every backend. A small one
/// is gathered, in one exchange; of a larger one each rank adds up a part, as an all-reduce does.
at::Tensor sum_over(Communicator& group, at::Tensor const& mine);

/// The tensors of all ranks one after the other along `dim`.
at::Tensor gather_over(Communicator& group, at::Tensor const& mine, std::int64_t dim);

/// This rank's part of a tensor that all ranks have, along `dim`.
at::Tensor part_over(Communicator& group, at::Tensor const& whole, std::int64_t dim);

/// Keeps a group alive for as long as a graph that exchanges in its backward pass.
struct GroupOfGraph : torch::CustomClassHolder {
  explicit GroupOfGraph(TensorGroup of) : group(std::move(of)) {}
  TensorGroup group;

  static void keep(torch::autograd::AutogradContext& in, TensorGroup const& group,
                   std::int64_t dim = 0) {
    in.saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<GroupOfGraph>(group));
    in.saved_data["dim"] = dim;
  }
  static TensorGroup of(torch::autograd::AutogradContext& graph) {
    return c10::static_intrusive_pointer_cast<GroupOfGraph>(graph.saved_data["group"].toCapsule())
        ->group;
  }
  static std::int64_t dim(torch::autograd::AutogradContext& graph) {
    return graph.saved_data["dim"].toInt();
  }
};

}  // namespace detail

/// The input of a sharded region, which all ranks have: the identity. Backward: the sum of the
/// gradients of all ranks (Megatron's f). Also for a parameter that all ranks have and use on their own
/// shards.
inline at::Tensor copy_to_group(at::Tensor const& x, TensorGroup const& group);
/// The output of a sharded region: the sum of all ranks' tensors. Backward: the identity (Megatron's g).
inline at::Tensor reduce_from_group(at::Tensor const& x, TensorGroup const& group);
/// This rank's part of a tensor that all have, along `dim`. Backward: gathers the parts. ModuleError
/// for a size that the group does not divide.
inline at::Tensor scatter_to_group(at::Tensor const& x, TensorGroup const& group,
                                   std::int64_t dim = -1);
/// The parts of all ranks one after the other along `dim`. Backward: this rank's part.
inline at::Tensor gather_from_group(at::Tensor const& x, TensorGroup const& group,
                                    std::int64_t dim = -1);

namespace detail {

// Each backward pass calls the public function, so that it can be differentiated again.

struct CopyToGroup : torch::autograd::Function<CopyToGroup> {
  static at::Tensor forward(torch::autograd::AutogradContext* graph, at::Tensor const& x,
                            TensorGroup const& group) {
    GroupOfGraph::keep(*graph, group);
    return x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* graph,
                                                 torch::autograd::variable_list const& gradients) {
    return {reduce_from_group(gradients[0], GroupOfGraph::of(*graph)), at::Tensor()};
  }
};

struct ReduceFromGroup : torch::autograd::Function<ReduceFromGroup> {
  static at::Tensor forward(torch::autograd::AutogradContext* graph, at::Tensor const& x,
                            TensorGroup const& group) {
    GroupOfGraph::keep(*graph, group);
    return sum_over(*group, x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* graph,
                                                 torch::autograd::variable_list const& gradients) {
    return {copy_to_group(gradients[0], GroupOfGraph::of(*graph)), at::Tensor()};
  }
};

struct ScatterToGroup : torch::autograd::Function<ScatterToGroup> {
  static at::Tensor forward(torch::autograd::AutogradContext* graph, at::Tensor const& x,
                            TensorGroup const& group, std::int64_t dim) {
    GroupOfGraph::keep(*graph, group, dim);
    return part_over(*group, x, dim).clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* graph,
                                                 torch::autograd::variable_list const& gradients) {
    return {gather_from_group(gradients[0], GroupOfGraph::of(*graph), GroupOfGraph::dim(*graph)),
            at::Tensor(), at::Tensor()};
  }
};

struct GatherFromGroup : torch::autograd::Function<GatherFromGroup> {
  static at::Tensor forward(torch::autograd::AutogradContext* graph, at::Tensor const& x,
                            TensorGroup const& group, std::int64_t dim) {
    GroupOfGraph::keep(*graph, group, dim);
    return gather_over(*group, x, dim);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* graph,
                                                 torch::autograd::variable_list const& gradients) {
    return {scatter_to_group(gradients[0], GroupOfGraph::of(*graph), GroupOfGraph::dim(*graph)),
            at::Tensor(), at::Tensor()};
  }
};

}  // namespace detail

inline at::Tensor copy_to_group(at::Tensor const& x, TensorGroup const& group) {
  return group->size() == 1 ? x : detail::CopyToGroup::apply(x, group);
}
inline at::Tensor reduce_from_group(at::Tensor const& x, TensorGroup const& group) {
  return group->size() == 1 ? x : detail::ReduceFromGroup::apply(x, group);
}
inline at::Tensor scatter_to_group(at::Tensor const& x, TensorGroup const& group,
                                   std::int64_t dim) {
  return group->size() == 1 ? x : detail::ScatterToGroup::apply(x, group, dim);
}
inline at::Tensor gather_from_group(at::Tensor const& x, TensorGroup const& group,
                                    std::int64_t dim) {
  return group->size() == 1 ? x : detail::GatherFromGroup::apply(x, group, dim);
}

}  // namespace frugal

namespace frugal::detail {

/// SettingsError unless each rank of the group gets the same number.
std::int64_t share_of(std::int64_t all, TensorGroup const& group, std::string const& where,
                      char const* what);

/// This rank's shard of a parameter, and where it is in the whole.
struct ShardOf {
  at::Tensor shard{};
  TensorPart part{};

  /// Cuts a parameter along `dim`. The shard is laid out with this dimension outermost, so that its
  /// elements are one run of the whole's.
  static ShardOf cut(at::Tensor const& whole, std::int64_t dim, TensorGroup const& group);
};

/// What a module registers, as `register_parameter(name, ShardOf::cut(...).shard)` alone would not
/// say that it is a shard.
template <class Module>
at::Tensor register_shard(Module& module, std::string const& name, at::Tensor const& whole,
                          std::int64_t dim, TensorGroup const& group) {
  if (group->size() == 1) return module.register_parameter(name, whole);
  ShardOf const own = ShardOf::cut(whole, dim, group);
  at::Tensor& registered = module.register_parameter(name, own.shard);
  cut_tensor(registered, own.part);
  return registered;
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/tensor_parallel/collectives.ipp>
#endif
