// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string_view>

namespace frugal::detail {

/// Allocations that fail in libraries below LibTorch, and its own on the CPU, have no type. Nor
/// have those on a GPU whose driver does not say how full it is, as in some containers and on
/// slices of a GPU (MIG): while LibTorch writes of the shortage, it asks that and gives up on the
/// answer.
inline bool tells_of_memory(std::string_view text) {
  for (char const* const words :
       {"can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED", "NVML_SUCCESS =="}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

/// Is the error, or one nested in it, that memory did not suffice?
inline bool is_out_of_memory(std::exception_ptr const& error) {
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
