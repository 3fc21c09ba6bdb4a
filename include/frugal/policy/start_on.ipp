// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/start_on.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::string judge_start(double on_cpu, double on_device, std::uint64_t steps) {
  std::string const took = "StartOn<Cpu>: a step took " + general(on_cpu, 2) +
                           " s on the CPU and " + general(on_device, 2) + " s on the device";
  if (on_cpu <= on_device) {
    return took + "; a pipeline this small may as well stay on the CPU";
  }
  if (on_cpu <= 4 * on_device) return {};
  double const cost = (on_cpu - on_device) * static_cast<double>(steps);
  return took + ", so its " + std::to_string(steps) + " steps cost " + general(cost, 2) +
         " s; the early phase on the CPU is for small pipelines";
}

}  // namespace frugal::detail
