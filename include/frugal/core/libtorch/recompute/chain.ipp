// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/recompute/chain.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>

namespace frugal::detail {

FRUGAL_INLINE AnyValue call_any(AnyModule& module, Arguments arguments) {
  auto const with = [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    return module.any_forward(std::move(arguments[Is])...);
  };
  switch (arguments.size()) {
    case 0:
      return with(std::make_index_sequence<0>{});
    case 1:
      return with(std::make_index_sequence<1>{});
    case 2:
      return with(std::make_index_sequence<2>{});
    case 3:
      return with(std::make_index_sequence<3>{});
    case 4:
      return with(std::make_index_sequence<4>{});
    default:
      throw ModuleError({.what = "a segmented Sequential is called with " +
                                 std::to_string(arguments.size()) + " arguments",
                         .where = "Recompute",
                         .why = "it passes on four at most",
                         .fix = "Pass them as a tuple or a vector."});
  }
}

FRUGAL_INLINE AnyValue ChainFrame::add(AnyModule const& module, Arguments arguments) {
  // Other code may have drawn random numbers since the last link.
  links_.push_back({module, Surroundings(inputs_.devices())});
  return record([&] { return call_any(links_.back().module, std::move(arguments)); });
}

}  // namespace frugal::detail
