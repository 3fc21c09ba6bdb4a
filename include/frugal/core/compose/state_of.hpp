// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/legality.hpp>
#include <frugal/core/compose/near_hooks.hpp>
#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/compose/services.hpp>

// A policy's State type, and whether it implements what the policy declares.
namespace frugal::detail {

/// The State of a policy that listens to nothing. One type per policy: two subobjects of one type
/// need distinct addresses, even if empty.
template <class P>
struct Stateless {
  Stateless() = default;
  explicit Stateless(P const&) {}
};

/// Whether a policy has nothing to do during a fit: no hooks and no services.
template <class P>
inline constexpr bool is_idle = std::same_as<typename P::listens, list<>> &&
                                std::same_as<typename provides_of<P>::type, list<>>;

template <class P>
concept HasPlainState = requires { typename P::State; };
template <class P, class Context>
concept HasStateOfRecipe = requires { typename P::template State<Context>; };

/// Whether it has no State. Its services are then members of its value.
template <class P, class Context>
inline constexpr bool is_stateless =
    is_idle<P> || (std::same_as<typename P::listens, list<>> && !HasPlainState<P> &&
                   !HasStateOfRecipe<P, Context>);

/// A State knows the recipe if it is a template over the Context: where it holds the engine, or calls the
/// objective. All others are plain classes, which are compiled once for all recipes.
template <class P, class Context>
struct state_of {};
template <class P, class Context>
  requires(!HasPlainState<P> && !is_idle<P> && HasStateOfRecipe<P, Context>)
struct state_of<P, Context> {
  using type = typename P::template State<Context>;
};
template <class P, class Context>
  requires is_stateless<P, Context>
struct state_of<P, Context> {
  using type = Stateless<P>;
};
template <class P, class Context>
  requires(HasPlainState<P> && !is_idle<P>)
struct state_of<P, Context> {
  using type = typename P::State;
};

/// A State is made of its policy, and of the recipe's facts where it asks for them.
template <class State, class P>
concept MadeOf = std::constructible_from<State, P const&> ||
                 std::constructible_from<State, P const&, RecipeFacts const&>;
template <class P, class Context>
concept HasState = is_stateless<P, Context> || MadeOf<typename state_of<P, Context>::type, P>;

/// Stands in for an archive when only the presence of persist() is checked.
struct AnyArchive {
  template <class T>
  void operator()(char const*, T&) const {}
};

template <class State>
inline constexpr bool persists =
    requires(State& state, AnyArchive& archive) { state.persist(archive); };

/// Whether a checkpoint of another recipe may lack the State.
template <class State>
inline constexpr bool is_dispensable = requires { typename State::dispensable; };

/// Passes a State to an archive in the scope, unless it is another one than `only`, or the archive lacks it and
/// may.
template <class State, class Archive>
void persist_in_scope(State& state, Archive& archive, std::string const& scope,
                      std::string_view only) {
  if (!only.empty() && scope != only) return;
  if constexpr (is_dispensable<State> && requires { archive.has(scope); }) {
    if (!archive.has(scope)) return;
  }
  archive.scope(scope, [&](auto& inner) {
    bool mark = true;
    if constexpr (is_dispensable<State>) inner("dispensable", mark);
    state.persist(inner);
  });
}

/// For an event whose caller does not need to know which policies ask to stop.
struct NoVerdict {
  void operator()(std::string_view) const {}
};

/// Calls a hook of a State; `on_verdict(kind)` if it asks to stop.
template <class Hook, class State, class Phase, class OnVerdict>
flow call_hook(State& state, Phase& phase, std::string_view kind, OnVerdict&& on_verdict) {
  if constexpr (std::same_as<decltype(Hook::call(state, phase)), flow>) {
    flow const verdict = Hook::call(state, phase);
    if (verdict == flow::stop) on_verdict(kind);
    return verdict;
  } else {
    Hook::call(state, phase);
    return flow::proceed;
  }
}

/// Of a State that has been found. It does not name the recipe, so plain States are checked once for all of
/// them.
template <class P, class State, class Phases>
constexpr bool well_formed_state() {
  constexpr bool keeps =
      std::is_empty_v<State> || persists<State> || requires { typename State::transient; };
  return agree<P, State, Phases>(typename P::listens{}, all_hooks{}) &&
         require_no_near_hook<P, State>(near_hooks{}) &&
         rules::not_persistent::require<keeps, P>() &&
         delivers<P, State>(typename provides_of<P>::type{});
}

template <class P, class Context>
constexpr bool well_formed() {
  if constexpr (is_idle<P>) {
    constexpr bool adapts = requires { requires P::adapts; };  // it is called before a run
    return rules::idle_observer::require<P::kind::slot || adapts, P>();
  } else if constexpr (!HasState<P, Context>) {
    return rules::no_state::require<false, P>();
  } else if constexpr (std::is_final_v<typename state_of<P, Context>::type>) {
    return rules::final_state::require<false, P>();
  } else {
    return well_formed_state<P, typename state_of<P, Context>::type, typename Context::phases>();
  }
}

/// Whether a policy may ask for the end at an event for a reason that others of several processes need
/// not have.
template <class Hook, class Context, class P>
consteval bool has_own_verdict() {
  constexpr bool listens = ((info_of<P>.listens >> Hook::index) & 1U) != 0;
  if constexpr (listens && !info_of<P>.agreed_verdicts) {
    using State = typename state_of<P, Context>::type;
    using Phase = typename Hook::phase;
    return std::same_as<decltype(Hook::call(std::declval<State&>(), std::declval<Phase&>())), flow>;
  } else {
    return false;
  }
}

[[noreturn]] void refuse_unreached(std::string_view hook);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/compose/state_of.ipp>
#endif
