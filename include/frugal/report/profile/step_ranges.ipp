// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/step_ranges.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void StepRanges::begin(bool nvtx, std::string_view part) {
  nvtx_ = nvtx && has_nvtx();
  enter(part, /*first=*/true);
}

FRUGAL_INLINE void StepRanges::enter(std::string_view part, bool first) {
  if (!first && !range_) return;
  leave();
  range_.emplace(at::RecordScope::USER_SCOPE);
  if (range_->isActive()) range_->before(part.data());
  if (nvtx_) torch::profiler::impl::cudaStubs()->rangePush(part.data());
}

FRUGAL_INLINE void StepRanges::leave() {
  if (!range_) return;
  if (nvtx_) torch::profiler::impl::cudaStubs()->rangePop();
  range_.reset();
}

}  // namespace frugal::detail
