// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <type_traits>

#include <frugal/compose/declared.hpp>
#include <frugal/compose/list.hpp>
#include <frugal/run/services.hpp>

namespace frugal::detail {

/// Micro-batches of a window, by the word of a policy; -1 where it does not say.
template <class P>
consteval int micro_batches_of() {
  if constexpr (requires { P::micro_batches; }) {
    return P::micro_batches;
  } else {
    return -1;
  }
}

template <class P>
consteval bool says_reevaluates() {
  if constexpr (requires { P::reevaluates; }) {
    return P::reevaluates;
  } else {
    return false;
  }
}

/// What a recipe asks of the loop, so that the loop has no code for what nobody asked for.
template <class Policies>
struct RecipeTraits;
template <class... Ps>
struct RecipeTraits<list<Ps...>> {
  /// To a window; 0: as many as the executor makes of one batch of the source.
  static constexpr int micro_batches = [] {
    int const said = std::max({-1, micro_batches_of<Ps>()...});
    return said < 0 ? 1 : said;
  }();
  static constexpr bool splits = micro_batches == 0;
  /// Batches of the source to a window.
  static constexpr int batches = splits ? 1 : micro_batches;
  /// Is a window this process' share of one, and what its backward passes start from its weight?
  static constexpr bool shares = provided<service::reduce, list<Ps...>>;
  /// Does the optimizer compute a window's loss more than once?
  static constexpr bool reevaluates = (false || ... || says_reevaluates<Ps>());
  /// What is measured in a validation, beside the loss.
  using metrics = concat<typename metrics_of<Ps>::type...>;
};

template <class Context>
using traits_of = RecipeTraits<typename Context::policies>;

}  // namespace frugal::detail
