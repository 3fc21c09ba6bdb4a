// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// One of AdamW, Adam, SGD, Adagrad, Any, Nothing.
template <class Algorithm>
struct Optimize {
  static_assert(
      detail::never<Algorithm>,
      "frugal: Optimize<...>: unknown optimizer. Options: AdamW, Adam, SGD, Adagrad, Any, "
      "Nothing. Include frugal/policy/optimize.hpp, which has them all.");
};

struct Nothing {};

/// Updates no weights: the null policy of the slot. fit() refuses a recipe that merely omits an
/// optimizer; written out, it measures forward and backward alone.
template <>
struct Optimize<Nothing> {
  using kind = kinds::optimizer;
  using listens = list<>;
};

template <>
struct null_policy<kinds::optimizer> {
  using type = Optimize<Nothing>;
};

}  // namespace frugal
