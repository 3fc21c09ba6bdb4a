// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

/// A policy that works on parts does not make up for its kind: one that knows ranks, and not shards, takes a
/// shard for the whole (Rollback, Freeze).
template <class P>
inline constexpr bool works_with_shards =
    is_null<P> || is_once_per_run<typename P::kind>() ||
    (has_property<property::knows_shards, P>
         ? WorksOnParts::met<P>
         : !contains<property::knows_ranks, typename properties_of<typename P::kind>::type> &&
               has_property<property::works_on_parts, P>);

/// The first policy of a recipe that would take a shard for a whole tensor; empty without.
template <class... Ps>
constexpr std::string_view not_for_shards(list<Ps...>) {
  std::string_view name;
  ((name = name.empty() && !works_with_shards<Ps> ? std::string_view(Ps::kind::name) : name), ...);
  return name;
}

/// What a run does for a module that is cut over a group of processes (tensor parallelism), beside
/// what it does for each copy.
class ShardedModule {
 public:
  /// `gives`: whether this copy of the module is that which checkpoints save.
  ShardedModule(Communicator& group, Parameters const& parameters, bool gives);

  ParameterParts const& parts() const { return parts_; }
  Communicator& group() const { return group_; }

  /// The whole of a tensor, in the first process, or `side_by_side` in the one that keeps the least so
  /// far; undefined in the others. All of them call it.
  at::Tensor whole(at::Tensor const& mine, TensorPart const& which, bool side_by_side);

  /// Parameters of which the norm counts here: those that all ranks have are the first one's.
  Parameters counted(Parameters const& updated) const;
  /// The norms of all ranks' blocks, in the order of ranks.
  at::Tensor norms(at::Tensor mine) const {
    at::Tensor all = at::empty({group_.size() * mine.numel()}, mine.options());
    group_.collect(all, mine, "the norm of gradients");
    return all;
  }

  /// What a rank says of a window.
  struct Verdict {
    bool preempts = false;
    bool fails = false;
    double loss = 0;
  };
  /// Whether one of all ranks asks for a preemption or has refused a loss. ModuleError if their losses
  /// differ: each would train its shards for another one.
  Verdict agree(Verdict const& mine) const;

  /// Throws ClusterError if a tensor that all ranks have is not the same in them.
  void require_same_copies(torch::nn::Module& module, char const* what) const;

  /// Throws ModuleError if all ranks have the same numbers for their shards of a parameter, and not one
  /// number: each has drawn its own from equal generators.
  void require_different_shards() const;

  /// Throws ModuleError if a parameter that all ranks have gets another gradient in one: it is used on a
  /// shard, so each rank has a part of the sum alone, and the copies would drift apart. Looks at each
  /// parameter until its gradient is not zero: before, all parts are alike.
  void require_same_gradients();

 private:
  int next_keeper(std::int64_t bytes) {
    auto const least = std::ranges::min_element(kept_);
    *least += bytes;
    return static_cast<int>(least - kept_.begin());
  }
  static std::string hash_of(at::Tensor const& tensor) {
    TensorHash hash;
    hash.add(tensor.detach());
    return hex_of(hash.digest());
  }

  static constexpr std::size_t hash_size = 16;  ///< of hash_of()

  Communicator& group_;
  bool gives_;
  /// Parameters that are not cut, and whose gradients have been zero so far.
  std::vector<std::size_t> waits_for_gradient_;
  std::vector<std::int64_t> kept_;  ///< bytes of checkpoints, by rank
  ParameterParts parts_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/tensor_parallel/sharded_module.ipp>
#endif
