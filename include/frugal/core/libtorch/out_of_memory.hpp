// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <exception>
#include <memory>
#include <string_view>

namespace frugal::detail {

/// Recognises an allocation failure by its text. Failures in libraries below LibTorch, and on the
/// CPU in LibTorch itself, have no error type. Nor do those on a GPU whose driver does not report
/// free memory, as in some containers and on MIG slices: LibTorch queries it while it builds the
/// out-of-memory error, and throws another error when the query fails.
bool tells_of_memory(std::string_view text);

/// Whether the error, or one nested in it, is an out-of-memory error.
bool is_out_of_memory(std::exception_ptr const& error);

/// For its lifetime, notes whether an allocation of tensors fails in this thread: for code that keeps LibTorch's
/// error to itself. A profiler of memory sees nothing of the thread meanwhile.
class [[nodiscard]] AllocationWatch {
 public:
  AllocationWatch();
  bool failed() const;

 private:
  class Notes;
  std::shared_ptr<Notes> notes_;
  c10::DebugInfoGuard guard_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/out_of_memory.ipp>
#endif
