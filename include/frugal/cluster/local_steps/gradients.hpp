// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/shard/sharded_parameters.hpp>
#include <frugal/cluster/tensors/exact_gradients.hpp>
#include <frugal/cluster/world.hpp>

namespace frugal::detail {

/// A window's gradients, of this process's micro-batches alone, added up in the order of
/// Replicate<Exact> in one process.
class LocalGradients {
 public:
  /// Of this process alone: in a window the weights differ.
  static constexpr bool are_local = true;

  explicit LocalGradients(Communicator& all) : all_(all), alone_({}, World{}), own_(alone_) {}

  void begin(std::vector<at::Tensor> const& parameters, ShardedParameters const* sharded) {
    own_.begin(parameters, sharded);
  }
  void before(bool is_last, double const& unit) { own_.before(is_last, unit); }
  void after() { own_.after(); }
  void begin_rest() { own_.begin_rest(); }
  /// The one message of a step: gradients stay here.
  at::Tensor exchange(at::Tensor const& message) {
    return all_.gather(message, "the losses of a step", /*after_tensors=*/true);
  }
  std::vector<bool> const& has() const { return own_.has(); }

  /// Undefined where this process has no gradient, whatever the others have.
  std::vector<at::Tensor> sum(std::vector<bool> const&) {
    std::vector<at::Tensor> sums = own_.sum({true});
    sums.resize(own_.has().size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (!own_.has()[i]) sums[i] = at::Tensor();
    }
    return sums;
  }
  /// No option divides them.
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts, ShardedParameters&) {
    return sum(counts);
  }

 private:
  Communicator& all_;
  Communicator alone_;
  ExactGradients own_;
};

}  // namespace frugal::detail
