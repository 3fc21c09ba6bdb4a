// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/accumulate/split.hpp>

#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::int64_t Parts::begin(std::int64_t part) const {
  std::int64_t const longer = samples % count;
  return part * (samples / count) + (part < longer ? part : longer);
}

FRUGAL_INLINE bool trains_batch_norm(torch::nn::Module& module) {
  bool found = false;
  each_batch_norm(module, [&](auto& layer) { found = found || layer.is_training(); });
  found = found || (module.is_training() && has_compiled_batch_norms(module));
  return found;
}

}  // namespace frugal::detail
