// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <frugal/error.hpp>

namespace frugal::detail {

/// ModuleError for two tensors over the same memory, which would be two parameters if each gets memory
/// of its own. `why`: what would become of them.
inline void require_memory_of_their_own(std::vector<at::Tensor> const& parameters,
                                        std::string where, std::string why) {
  std::set<void const*> seen;
  for (at::Tensor const& each : parameters) {
    if (each.numel() == 0 || seen.insert(each.const_data_ptr()).second) continue;
    throw ModuleError(
        {.what = "two parameters share their memory, and are two tensors",
         .where = std::move(where),
         .why = std::move(why),
         .fix = "Register one tensor under both names: tied weights are trained once."});
  }
}

}  // namespace frugal::detail
