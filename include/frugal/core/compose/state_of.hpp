// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/legality.hpp>
#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/compose/services.hpp>

// Names that are close to a hook's, or that other trainers give to their callbacks. Without this list a
// State that has one would compile, and its member would never be called. A name and what to write.
#define FRUGAL_NEAR_HOOKS(NEAR)                                                                   \
  NEAR(on_begin, "on_fit_begin")                                                                  \
  NEAR(on_start, "on_fit_begin")                                                                  \
  NEAR(on_fit_start, "on_fit_begin")                                                              \
  NEAR(on_train_begin, "on_fit_begin")                                                            \
  NEAR(on_train_start, "on_fit_begin")                                                            \
  NEAR(on_end, "on_fit_end")                                                                      \
  NEAR(on_stop, "on_fit_end")                                                                     \
  NEAR(on_finish, "on_fit_end")                                                                   \
  NEAR(on_train_end, "on_fit_end")                                                                \
  NEAR(on_epoch, "on_epoch_begin or on_epoch_end")                                                \
  NEAR(on_epoch_start, "on_epoch_begin")                                                          \
  NEAR(on_train_epoch_start, "on_epoch_begin")                                                    \
  NEAR(on_train_epoch_end, "on_epoch_end")                                                        \
  NEAR(on_window_begin, "on_window")                                                              \
  NEAR(on_window_start, "on_window")                                                              \
  NEAR(on_window_end, "on_step")                                                                  \
  NEAR(on_step_begin, "on_window")                                                                \
  NEAR(on_step_start, "on_window")                                                                \
  NEAR(on_step_end, "on_step")                                                                    \
  NEAR(on_batch, "on_window, around_micro_batch or on_step")                                      \
  NEAR(on_batch_begin, "on_window or around_micro_batch")                                         \
  NEAR(on_batch_start, "on_window or around_micro_batch")                                         \
  NEAR(on_batch_end, "around_micro_batch or on_step")                                             \
  NEAR(on_train_batch_start, "on_window or around_micro_batch")                                   \
  NEAR(on_train_batch_begin, "on_window or around_micro_batch")                                   \
  NEAR(on_train_batch_end, "around_micro_batch or on_step")                                       \
  NEAR(on_micro_batch, "around_micro_batch")                                                      \
  NEAR(around_batch, "around_micro_batch")                                                        \
  NEAR(on_forward, "around_forward")                                                              \
  NEAR(on_before_backward, "on_loss")                                                             \
  NEAR(on_after_backward, "on_backward or on_gradients")                                          \
  NEAR(on_gradient, "on_gradients")                                                               \
  NEAR(on_before_optimizer_step, "on_gradients")                                                  \
  NEAR(on_pre_optimizer_step, "on_gradients")                                                     \
  NEAR(on_optimizer_step, "on_update or on_step")                                                 \
  NEAR(on_validate, "on_validated or around_validate")                                            \
  NEAR(on_validation, "on_validated or around_validate")                                          \
  NEAR(on_validation_begin, "around_validate")                                                    \
  NEAR(on_validation_start, "around_validate")                                                    \
  NEAR(on_validation_end, "on_validated")                                                         \
  NEAR(on_validate_end, "on_validated")                                                           \
  NEAR(on_evaluate, "on_validated")                                                               \
  NEAR(around_validation, "around_validate")                                                      \
  NEAR(around_train, "around_fit")                                                                \
  NEAR(on_preempted, "on_preempt")                                                                \
  NEAR(on_stop_requested, "stop_requested")                                                       \
  NEAR(on_event, "on_recorded")                                                                   \
  NEAR(on_record, "on_recorded")                                                                  \
  NEAR(on_log, "on_recorded for events, or a sink such as OnMetrics for the lines of a log")      \
  NEAR(on_save, "persist() for what a checkpoint keeps; no hook is called for a save")            \
  NEAR(on_checkpoint, "on_saved for a checkpoint on disk, persist() for what it keeps")           \
  NEAR(on_save_checkpoint, "persist() for what a checkpoint keeps; no hook is called for a save") \
  NEAR(on_load_checkpoint, "persist(), or on_ready for what follows a resume")

namespace frugal::detail::near_hook {

#define FRUGAL_DEFINE_NEAR(member, right)                                                      \
  struct member {                                                                              \
    template <class Probe>                                                                     \
    static constexpr bool named = !requires { &Probe::member; };                               \
    FRUGAL_DIAGNOSTIC(no_hook, "frugal: this policy's State has " #member                      \
                               ", which is not a hook and would never be called. Write " right \
                               ", or give a member of your own another name.");                \
  };
FRUGAL_NEAR_HOOKS(FRUGAL_DEFINE_NEAR)
#undef FRUGAL_DEFINE_NEAR

}  // namespace frugal::detail::near_hook

namespace frugal::detail {

#define FRUGAL_NEAR_NAME(member, ...) void member();
struct near_hook_names {
  FRUGAL_NEAR_HOOKS(FRUGAL_NEAR_NAME)
};
#undef FRUGAL_NEAR_NAME

#define FRUGAL_NEAR_TAG(member, ...) , near_hook::member
using near_hooks = behind_first<void FRUGAL_NEAR_HOOKS(FRUGAL_NEAR_TAG)>::type;
#undef FRUGAL_NEAR_TAG

// One question for all names: only a State that has one costs an instantiation for each.
#define FRUGAL_NEAR_ABSENT(member, ...) &name_probe<State, near_hook_names>::member;
template <class State>
inline constexpr bool has_near_hook = !requires { FRUGAL_NEAR_HOOKS(FRUGAL_NEAR_ABSENT) };
#undef FRUGAL_NEAR_ABSENT
#undef FRUGAL_NEAR_HOOKS

template <class P, class State, class... Near>
constexpr bool require_no_near_hook(list<Near...>) {
  if constexpr (has_near_hook<State>) {
    using Probe = name_probe<State, near_hook_names>;
    return (true & ... & Near::no_hook::template require<!Near::template named<Probe>, P>());
  } else {
    return true;
  }
}

}  // namespace frugal::detail

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
  if constexpr (!are_properties<typename properties_of<P>::type> ||
                !are_properties<typename properties_of<typename P::kind>::type>) {
    return rules::no_property::require<false, P>();
  } else if constexpr (has_property_as_bool<P>()) {
    return rules::property_as_bool::require<false, P>();
  } else if constexpr (is_idle<P>) {
    // One that adapts the module is called before a run.
    constexpr bool adapts = has_property<property::adapts, P>;
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
