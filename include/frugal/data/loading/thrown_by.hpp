// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

namespace frugal::detail {

/// Calls `body`. Returns what it threw, but lets the end of its thread (pthread_exit) pass: glibc
/// ends a thread by an exception, and aborts the program if somebody keeps it.
template <class Body>
std::exception_ptr thrown_by(Body&& body) {
  try {
    body();
#if defined(__GLIBCXX__)
  } catch (abi::__forced_unwind const&) {
    throw;
#endif
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace frugal::detail
