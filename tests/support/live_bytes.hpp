// SPDX-License-Identifier: Apache-2.0
// Bytes of the CPU's tensors, as LibTorch reports them to its profiler: no allocator is replaced.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace frugal_test::support {

/// Bytes that this thread allocates and frees during its lifetime.
class LiveBytes {
 public:
  std::int64_t now() const { return count_->now; }
  std::int64_t peak() const { return count_->peak; }
  /// Restarts the peak from the current bytes.
  void forget_peak() { count_->peak = count_->now; }

 private:
  struct Count final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                           c10::Device device) override {
      if (!device.is_cpu()) return;
      now += bytes;
      peak = std::max(peak, now);
    }
    bool memoryProfilingEnabled() const override { return true; }

    std::int64_t now = 0;
    std::int64_t peak = 0;
  };

  std::shared_ptr<Count> count_ = std::make_shared<Count>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, count_};
};

}  // namespace frugal_test::support
