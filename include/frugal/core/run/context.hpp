// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/engine.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/window_phases.hpp>

namespace frugal {

/// What the loop gives a hook, whatever the recipe: its phase, and what an around-hook continues with.
struct LoopPhases {
  template <class Hook>
  using phase = typename Hook::phase;
  template <class Hook>
  using continuation = typename Hook::continuation;
};

/// The types that a policy's State is written against: the module, the recipe, the phases.
template <class Module, class... Ps>
struct Context {
  using module_type = Module;
  using policies = list<Ps...>;
  using engine = Engine<Context, Ps...>;
  /// What the types say; facts_of() has all.
  static constexpr RecipeFacts facts = detail::facts_of<policies>();
  /// The facts of a recipe with these values of its policies.
  static RecipeFacts facts_of(detail::Storage<Ps...> const& values) {
    return detail::facts_of(policies{}, values);
  }
  /// What each measurement begins with, likewise.
  static auto metrics_of(detail::Storage<Ps...> const& values) {
    return detail::metrics_in<Ps...>(values);
  }
  using phases = LoopPhases;
};

}  // namespace frugal
