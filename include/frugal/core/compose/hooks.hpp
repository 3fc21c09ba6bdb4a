// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>

namespace frugal {

/// The result of a hook that may end the run. Verdicts are combined without short-circuit.
enum class [[nodiscard]] flow : bool { proceed = false, stop = true };

constexpr flow operator|(flow a, flow b) {
  return static_cast<flow>(static_cast<bool>(a) || static_cast<bool>(b));
}
constexpr flow& operator|=(flow& a, flow b) { return a = a | b; }

namespace detail {

/// Stands in for the continuation when only the signature of an around-hook is checked.
struct any_continuation {
  void operator()() const {}
};

// C++ cannot ask whether a class has a member with that name, whatever its signature. But a name
// that two bases share is ambiguous, so `&probe::name` stops compiling exactly when State has it.
// One probe serves all hooks: a class for each would be twenty per policy and recipe.
struct hook_names;
template <class State, class Names = hook_names>
struct name_probe : State, Names {};

}  // namespace detail

// One line defines a hook: its tag, its member's name, whether it may end the run, and its
// signature. Detection, dispatch and error sentences follow from that.
#define FRUGAL_HOOK(space, tag, member, number, stops, ...)                                     \
  namespace space {                                                                             \
  struct tag {                                                                                  \
    static constexpr std::string_view name = #member;                                           \
    static constexpr std::size_t index = number;                                                \
    static constexpr bool may_stop = stops;                                                     \
    struct fallback {                                                                           \
      void member();                                                                            \
    };                                                                                          \
    template <class State>                                                                      \
    static constexpr bool named = !requires { &detail::name_probe<State>::member; };            \
    template <class State, class... Args>                                                       \
    static constexpr bool callable =                                                            \
        requires(State& state, Args&... args) { state.member(args...); };                       \
    template <class State, class... Args>                                                       \
    static constexpr decltype(auto) call(State& state, Args&... args) {                         \
      return state.member(args...);                                                             \
    }                                                                                           \
    FRUGAL_DIAGNOSTIC(unimplemented, "frugal: this policy listens to " #space "::" #tag         \
                                     " and its State has no " #member                           \
                                     ". Write the member, or remove the hook from `listens`."); \
    FRUGAL_DIAGNOSTIC(undeclared,                                                               \
                      "frugal: this policy's State has " #member                                \
                      " and it would never be called. Add " #space "::" #tag " to `listens`."); \
    FRUGAL_DIAGNOSTIC(                                                                          \
        mistyped, "frugal: this policy's " #member                                              \
                  " cannot be called with what the loop gives it. Write " #member __VA_ARGS__); \
    FRUGAL_DIAGNOSTIC(cannot_stop,                                                              \
                      "frugal: this policy's " #member                                          \
                      " returns a flow, and a run cannot stop there. Return void, and stop in " \
                      "on_window, on_step, on_epoch_end or on_validated.");                     \
    FRUGAL_DIAGNOSTIC(                                                                          \
        misreturned,                                                                            \
        "frugal: this policy's " #member                                                        \
        " returns a value that the loop does not use. Return void; a flow where the run "       \
        "may end; what next() returns in an around-hook; a bool in a query.");                  \
  };                                                                                            \
  }

// The closed list, in the order of a run (docs/loop.md draws the loop); hooks that most runs never
// reach come last. The numbers are bits of a mask, and never saved.
FRUGAL_HOOK(on, module, on_module, 0, false, "(ModuleSetup<Context>&).")
FRUGAL_HOOK(around, fit, around_fit, 1, false,
            "(FitRun<Context> const&, auto&& next) and call next().")
FRUGAL_HOOK(on, fit_begin, on_fit_begin, 2, true, "(FitBegin<Context>&).")
FRUGAL_HOOK(on, ready, on_ready, 3, false, "(Ready<Context>&).")
FRUGAL_HOOK(around, epoch, around_epoch, 4, false,
            "(EpochRun<Context> const&, auto&& next) and call next().")
FRUGAL_HOOK(on, epoch_begin, on_epoch_begin, 5, false, "(EpochBegin<Context> const&).")
FRUGAL_HOOK(on, window, on_window, 6, true, "(WindowBegin<Context>&).")
FRUGAL_HOOK(around, micro_batch, around_micro_batch, 7, false,
            "(MicroBatchRun<Context> const&, auto&& next) and call next().")
FRUGAL_HOOK(around, forward, around_forward, 8, false,
            "(Forward<Context> const&, auto&& next) and return next().")
FRUGAL_HOOK(on, loss, on_loss, 9, false, "(LossReady<Context>&).")
FRUGAL_HOOK(on, backward, on_backward, 10, false, "(Backward<Context> const&).")
FRUGAL_HOOK(on, gradients, on_gradients, 11, false, "(Gradients<Context>&).")
FRUGAL_HOOK(on, update, on_update, 12, false, "(Update<Context>&).")
FRUGAL_HOOK(on, step, on_step, 13, true, "(Step<Context>&).")
FRUGAL_HOOK(around, validate, around_validate, 14, false,
            "(ValidationRun<Context> const&, auto&& next) and return next().")
FRUGAL_HOOK(on, validated, on_validated, 15, true, "(Validated<Context>&).")
FRUGAL_HOOK(on, epoch_end, on_epoch_end, 16, true, "(EpochEnd<Context>&).")
FRUGAL_HOOK(on, fit_end, on_fit_end, 17, false, "(FitEnd<Context> const&).")
FRUGAL_HOOK(on, undo, on_undo, 18, false, "(WindowRetry<Context> const&).")
FRUGAL_HOOK(on, preempt, on_preempt, 19, false, "(Preemption<Context>&).")
FRUGAL_HOOK(on, recorded, on_recorded, 20, false, "(Recorded<Context> const&).")
FRUGAL_HOOK(query, stop_requested, stop_requested, 21, false,
            "(Phase<Context> const&) and return a bool.")

#undef FRUGAL_HOOK

/// All hooks. A policy can listen to these only.
using all_hooks =
    list<on::module, around::fit, on::fit_begin, on::ready, around::epoch, on::epoch_begin,
         on::window, around::micro_batch, around::forward, on::loss, on::backward, on::gradients,
         on::update, on::step, around::validate, on::validated, on::epoch_end, on::fit_end,
         on::undo, on::preempt, on::recorded, query::stop_requested>;

namespace detail {

/// A class with a member for every hook's name.
template <class List>
struct names_of;
template <class... Hooks>
struct names_of<list<Hooks...>> : Hooks::fallback... {};
struct hook_names : names_of<all_hooks> {};

/// The hooks whose names a State has, one bit each.
template <class State, class List = all_hooks>
inline constexpr unsigned named_mask = 0;
template <class State, class... Hooks>
inline constexpr unsigned named_mask<State, list<Hooks...>> =
    (0U | ... | (unsigned{Hooks::template named<State>} << Hooks::index));

}  // namespace detail

/// Hooks that receive a continuation and return its result.
template <class Hook>
inline constexpr bool is_around =
    std::same_as<Hook, around::fit> || std::same_as<Hook, around::epoch> ||
    std::same_as<Hook, around::micro_batch> || std::same_as<Hook, around::forward> ||
    std::same_as<Hook, around::validate>;

/// Hooks that ask a question and return a bool; every subscriber is asked.
template <class Hook>
inline constexpr bool is_query = std::same_as<Hook, query::stop_requested>;

}  // namespace frugal
