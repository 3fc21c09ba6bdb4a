// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <frugal/loop/any_run.hpp>
#include <frugal/loop/counters.hpp>
#include <frugal/libtorch/generators.hpp>
#include <frugal/loop/ledger.hpp>

namespace frugal::detail {

/// What the forward and backward passes of a window change, as it was when the window began:
/// buffers, generators, gradients, counters, losses. Parameters change behind it.
///
/// Costs per window the generators' states and, where the module has buffers, one grouped copy of
/// them for each type; their memory is taken once.
class WindowStart {
 public:
  void take(AnyRun const& run) {
    if (!looked_) look_at(run.root);
    {
      at::NoGradGuard const no_gradients;
      for (Group const& group : groups_) at::_foreach_copy_(group.kept, group.buffers);
    }
    generators_.clear();
    for (auto& [name, generator] : generators_of(run.device)) {
      generators_.emplace_back(generator, state_of_generator(generator));
    }
    counters_ = run.counters;
    ledger_ = run.ledger.mark();
  }

  void put_back(AnyRun& run) {
    {
      at::NoGradGuard const no_gradients;
      for (Group const& group : groups_) at::_foreach_copy_(group.buffers, group.kept);
    }
    for (auto& [generator, state] : generators_) set_state_of_generator(generator, state);
    run.parameters.reset_gradients();
    run.counters = counters_;
    run.ledger.go_back(ledger_);
  }

 private:
  // Of one type and device, so that one kernel copies them all.
  struct Group {
    std::vector<at::Tensor> buffers;
    std::vector<at::Tensor> kept;
  };

  void look_at(torch::nn::Module& module) {
    looked_ = true;
    std::map<std::pair<at::ScalarType, std::string>, Group> groups;
    for (at::Tensor const& buffer : module.buffers()) {
      if (!buffer.defined()) continue;
      Group& group = groups[{buffer.scalar_type(), buffer.device().str()}];
      group.buffers.push_back(buffer);
      group.kept.push_back(at::empty_like(buffer));
    }
    for (auto& [type, group] : groups) groups_.push_back(std::move(group));
  }

  bool looked_ = false;
  std::vector<Group> groups_;
  std::vector<std::pair<at::Generator, at::Tensor>> generators_;
  Counters counters_;
  LossLedger::Mark ledger_;
};

}  // namespace frugal::detail
