// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/out_of_memory.hpp>

#include <frugal/inline.hpp>

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace frugal::detail {

FRUGAL_INLINE bool tells_of_memory(std::string_view text) {
  for (char const* const words :
       {"can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED", "NVML_SUCCESS =="}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

FRUGAL_INLINE bool is_out_of_memory(std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (std::bad_alloc const&) {
    return true;
  } catch (c10::OutOfMemoryError const&) {
    return true;
  } catch (c10::Error const& other) {
    return tells_of_memory(other.what_without_backtrace());
  } catch (std::exception const& outer) {
    try {
      std::rethrow_if_nested(outer);
    } catch (...) {
      return is_out_of_memory(std::current_exception());
    }
    return false;
  } catch (...) {
    return false;
  }
}

/// What LibTorch's allocators tell a profiler.
class AllocationWatch::Notes final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t, std::size_t, std::size_t, c10::Device) override {}
  void reportOutOfMemory(std::int64_t, std::size_t, std::size_t, c10::Device) override {
    failed = true;
  }
  bool memoryProfilingEnabled() const override { return true; }

  bool failed = false;
};

FRUGAL_INLINE AllocationWatch::AllocationWatch()
    : notes_(std::make_shared<Notes>()), guard_(c10::DebugInfoKind::PROFILER_STATE, notes_) {}
FRUGAL_INLINE bool AllocationWatch::failed() const { return notes_->failed; }

}  // namespace frugal::detail
