// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

/// `max_norm` changes rows of the weight in the forward pass, those of a process's own samples.
void refuse_renormalized(torch::nn::Module& module, char const* where);

/// What must be the same in all processes that train together, by name, for require_same_run().
template <class Context>
std::vector<std::pair<std::string, std::string>> run_values(FitBegin& phase) {
  RunLimits const& horizon = phase.horizon();
  LoopInterface const& loop = *phase.run_state().links.loop();
  auto const number = [](auto const& value) {
    return value ? std::to_string(*value) : std::string("unknown");
  };
  auto const limit = [](std::uint64_t value) {
    return value == RunLimits::unlimited ? std::string("unlimited") : std::to_string(value);
  };
  std::vector<std::pair<std::string, std::string>> values{
      {"the seed", std::to_string(phase.settings().seed)},
      {"the batch size", number(loop.batch_size())},
      {"the batch size of the validation", loop.validation_batch_sizes()},
      {"the number of epochs (Settings::epochs)", limit(horizon.epochs)},
      {"the number of steps (Settings::steps)", limit(horizon.steps)},
      {"the number of micro-batches of a step (Accumulate)", std::to_string(phase.facts().batches)},
      {"the recipe", std::string(typeid(typename Context::policies).name())},
      {"the number of threads (OMP_NUM_THREADS)", std::to_string(at::get_num_threads())},
      {"the instruction set (ATEN_CPU_CAPABILITY)", at::get_cpu_capability()}};
  std::string data;
  DataIdentity const identity = loop.identify_data();
  for (auto const& [name, value] : identity.values()) {
    data += (data.empty() ? "" : ", ") + name + " " + value;
  }
  values.emplace_back("the data", data);
  // What follows from settings that a source does not say.
  values.emplace_back("the number of samples of an epoch", number(horizon.samples_per_epoch));
  values.emplace_back("the number of steps of an epoch", number(horizon.steps_per_epoch));
  values.emplace_back("the total number of steps", number(horizon.total_steps));
  values.emplace_back("the number of batches of a validation", number(loop.validation_batches()));
  return values;
}

/// What processes have in common beside the weights.
struct CommonMoments {
  std::string name{};  ///< "optimizer's moments"
  std::function<void(StateWriter&)> write{};
};

/// Compares the copies of a module in several processes after each checkpoint. A copy that has come apart,
/// by a memory fault or by code that acts in one process alone, adds its gradients to those of the others,
/// and no step shows it.
///
/// Cost  a hash of the weights and of the optimizer's moments, at the speed of memory; from a device a copy
///       of them.
class SameReplicas {
 public:
  /// They are the same now.
  void begin(RunState const& run) {
    saves_ = run.together.begun;
    step_ = run.counters().step;
  }
  /// Whether this process has saved since they were compared.
  bool has_saved(RunState const& run) const { return run.together.begun != saves_; }

  /// Those of the policy that updates the weights.
  static CommonMoments of_optimizer(RunState const& run);

  /// All call it before an update, after a save at step `saved`. ClusterError, in all, if the copies differ.
  /// Without `moments` where each process has its own.
  void compare(Communicator& all, RunState const& run, std::uint64_t saved,
               CommonMoments const& moments = {});

 private:
  [[noreturn]] void refuse(Communicator const& all, std::size_t rank, std::string const& what,
                           std::uint64_t now, std::uint64_t saved) const;

  std::uint64_t saves_ = 0;
  std::uint64_t step_ = 0;  ///< at which they were the same
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/agreement/same_replicas.ipp>
#endif
