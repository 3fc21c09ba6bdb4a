// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal::detail {

FRUGAL_INLINE void require_dense(std::string const& name, at::Tensor const& parameter) {
  if (parameter.layout() == at::kStrided && parameter.is_non_overlapping_and_dense()) return;
  throw SettingsError({.what = "parameter '" + name + "' is not contiguous in memory",
                       .where = "Optimize",
                       .why = "a fused kernel reads a parameter's memory from end to end",
                       .fix = "Register a copy: parameter.contiguous(), or clone()."});
}

FRUGAL_INLINE std::vector<std::vector<std::size_t>> buckets_of(
    Parameters const& parameters, std::vector<ParameterSettings> const& settings) {
  std::vector<std::vector<std::size_t>> buckets;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor const& parameter = parameters.tensors[i];
    require_dense(parameters.names[i], parameter);
    auto const takes = [&](std::vector<std::size_t> const& bucket) {
      at::Tensor const& first = parameters.tensors[bucket.front()];
      return settings[i].same_update(settings[bucket.front()]) &&
             parameter.device() == first.device() && parameter.scalar_type() == first.scalar_type();
    };
    auto bucket = std::find_if(buckets.begin(), buckets.end(), takes);
    if (bucket == buckets.end()) bucket = buckets.emplace(bucket);
    bucket->push_back(i);
  }
  return buckets;
}

}  // namespace frugal::detail
