// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/cost_meter.hpp>

#ifdef FRUGAL_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

#include <algorithm>
#include <cstring>

#include <frugal/inline.hpp>
#include <frugal/report/plan/peak.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::array<unsigned char, 16>> cuda_uuids() {
  std::vector<std::array<unsigned char, 16>> uuids;
#ifdef FRUGAL_CUDA
  for (c10::DeviceIndex i = 0; i < c10::cuda::device_count(); ++i) {
    auto const& uuid = at::cuda::getDeviceProperties(i)->uuid;
    static_assert(sizeof uuid.bytes == sizeof uuids[0]);
    std::memcpy(uuids.emplace_back().data(), uuid.bytes, sizeof uuid.bytes);
  }
#endif
  return uuids;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE detail::Rate CostMeter::rate(bool on_gpu, Processes const& all) const {
  char const* const environment = std::getenv(detail::price_variable);
  bool const per_node =
      std::holds_alternative<plan::PricePerNode>(price) ||
      (std::holds_alternative<std::monostate>(price) && offer.empty() && environment != nullptr);
  return detail::rate_of({.price = price,
                          .devices = devices.value_or(all.count),
                          .nodes = nodes.value_or(per_node ? all.machines : 1),
                          .machines = nodes ? 1 : all.machines,
                          .prices = prices,
                          .offer = offer,
                          .spot = spot,
                          .currency = currency,
                          .other_per_hour = other_per_hour,
                          .model = on_gpu ? watch::gpu_model() : std::string(),
                          .environment = environment});
}

}  // namespace frugal
