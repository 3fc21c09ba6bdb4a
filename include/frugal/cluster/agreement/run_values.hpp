// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <frugal/core/run/phases.hpp>
#include <frugal/data/data_identity.hpp>

namespace frugal::detail {

/// What must be the same in all processes that train together, by name, for require_same_run().
template <class Context>
std::vector<std::pair<std::string, std::string>> run_values(FitBegin<Context>& phase) {
  std::vector<std::pair<std::string, std::string>> values{
      {"the seed", std::to_string(phase.settings().seed)},
      {"the number of steps", std::to_string(phase.horizon().steps)},
      {"the recipe", std::string(typeid(typename Context::policies).name())},
      {"the number of threads (OMP_NUM_THREADS)", std::to_string(at::get_num_threads())},
      {"the instruction set (ATEN_CPU_CAPABILITY)", at::get_cpu_capability()}};
  std::string data;
  DataIdentity const identity = phase.run_state().loop->identify_data();
  for (auto const& [name, value] : identity.values()) {
    data += (data.empty() ? "" : ", ") + name + " " + value;
  }
  values.emplace_back("the data", data);
  return values;
}

}  // namespace frugal::detail
