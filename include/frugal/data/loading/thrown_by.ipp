// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/thrown_by.hpp>

#include <frugal/inline.hpp>

#include <cstdlib>
#include <memory>

namespace frugal::detail {

FRUGAL_INLINE std::string type_name(std::type_info const& type) {
#if __has_include(<cxxabi.h>)
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> const name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  if (name) return name.get();
#endif
  return type.name();
}

}  // namespace frugal::detail
