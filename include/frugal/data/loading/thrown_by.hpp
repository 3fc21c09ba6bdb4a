// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <typeinfo>

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

/// A type's name as it is written, where the compiler can say it.
std::string type_name(std::type_info const& type);

/// The type of the exception that is being handled, for those that are no std::exception.
inline std::string current_exception_name() {
#if __has_include(<cxxabi.h>)
  if (auto const* const type = abi::__cxa_current_exception_type()) return type_name(*type);
#endif
  return "unknown type";
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/thrown_by.ipp>
#endif
