// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/pool.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void WorkerProgress::begin(std::uint64_t what, bool is_whole, Time now) {
  at.store(what, std::memory_order_relaxed);
  whole.store(is_whole, std::memory_order_relaxed);
  since.store(now, std::memory_order_relaxed);
}

}  // namespace frugal::detail
