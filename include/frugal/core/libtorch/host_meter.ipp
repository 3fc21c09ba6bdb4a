// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/host_meter.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void HostMeter::install() {
  c10::Allocator* const present = c10::GetCPUAllocator();
  if (present == &instance() || comes_here(*present)) return;
  instance().below_ = present;
  c10::SetCPUAllocator(&instance());
  if (c10::GetCPUAllocator() == &instance()) return;
  throw SettingsError({.what = "the memory of CPU tensors cannot be limited in this process",
                       .where = "AutoBatch::limit",
                       .why = "an allocator of a higher priority is installed",
                       .fix = "Install it with priority 0, or use Accumulate<Auto> with "
                              "`samples` instead of AutoBatch."});
}

FRUGAL_INLINE bool HostMeter::comes_here(c10::Allocator& other) {
  Limit const nothing(0);
  try {
    other.allocate(1);
    return false;
  } catch (c10::OutOfMemoryError const&) {
    return true;
  }
}

FRUGAL_INLINE void HostMeter::release(void* data) {
  if (data == nullptr) return;
  Front const front = *reinterpret_cast<Front*>(static_cast<std::byte*>(data) - in_front);
  live_.fetch_sub(front.size, std::memory_order_relaxed);
  front.free(front.context);
}

FRUGAL_INLINE void HostMeter::refuse(std::int64_t size, std::int64_t now) {
  // As LibTorch's own allocators do: compiled code keeps the error to itself.
  c10::reportOutOfMemoryToProfiler(size, static_cast<std::size_t>(now),
                                   static_cast<std::size_t>(most_), c10::Device(c10::kCPU));
  TORCH_CHECK_WITH(OutOfMemoryError, false, "frugal: ", size, " bytes more would make ", now,
                   " of CPU tensors, and the limit is ", most_);
}

}  // namespace frugal::detail
