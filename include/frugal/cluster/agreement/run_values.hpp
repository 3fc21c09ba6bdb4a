// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include <cstdint>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/source/data_identity.hpp>

namespace frugal::detail {

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
      {"the number of micro-batches of a step (Accumulate)",
       std::to_string(traits_of<Context>::batches)},
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

}  // namespace frugal::detail
