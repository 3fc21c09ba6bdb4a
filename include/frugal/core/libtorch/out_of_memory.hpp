// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string_view>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// Recognises an allocation failure by its text. Failures in libraries below LibTorch, and on the
/// CPU in LibTorch itself, have no error type. Nor do those on a GPU whose driver does not report
/// free memory, as in some containers and on MIG slices: LibTorch queries it while it builds the
/// out-of-memory error, and throws another error when the query fails.
FRUGAL_INLINE bool tells_of_memory(std::string_view text) {
  for (char const* const words :
       {"can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED", "NVML_SUCCESS =="}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

/// Whether the error, or one nested in it, is an out-of-memory error.
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

}  // namespace frugal::detail
