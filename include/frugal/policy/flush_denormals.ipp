// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/flush_denormals.hpp>

#include <frugal/inline.hpp>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <cstdint>
#include <limits>

namespace frugal {

FRUGAL_INLINE bool FlushDenormals::flushes() {
  float const volatile smallest = std::numeric_limits<float>::min();
  float const volatile half = smallest / 2;
  return half == 0.0F;
}

FRUGAL_INLINE bool FlushDenormals::set_all(bool on) {
  bool const supported = at::globalContext().setFlushDenormal(on);
  at::parallel_for(0, at::get_num_threads(), 1,
                   [on](std::int64_t, std::int64_t) { at::globalContext().setFlushDenormal(on); });
  return supported;
}

}  // namespace frugal
