// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/inline.hpp>

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

namespace frugal::detail {

/// A type's name as it is written, where the compiler can say it.
FRUGAL_INLINE std::string type_name(std::type_info const& type) {
#if __has_include(<cxxabi.h>)
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> const name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  if (name) return name.get();
#endif
  return type.name();
}

/// The type of the exception that is being handled, for those that are no std::exception.
inline std::string current_exception_name() {
#if __has_include(<cxxabi.h>)
  if (auto const* const type = abi::__cxa_current_exception_type()) return type_name(*type);
#endif
  return "unknown type";
}

}  // namespace frugal::detail
