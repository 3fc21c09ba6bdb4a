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

// C++ cannot ask whether a class has a member with that name, whatever its signature. But a name
// that two bases share is ambiguous, so `&probe::name` stops compiling exactly when State has it.
// One probe serves all hooks: a class for each would be twenty per policy and recipe.
struct hook_names;
template <class State, class Names = hook_names>
struct name_probe : State, Names {};

}  // namespace detail

/// How a hook is called.
enum class HookForm {
  on,      ///< an event: every subscriber is called
  around,  ///< gets a continuation, and returns its result; the first subscriber is the outermost
  query,   ///< asks every subscriber, and each returns a bool
};

// The table of all hooks, in the order of a run (docs/loop.md draws the loop); hooks that most runs
// never reach come last. A line has all that is known of a hook: its form and tag, the member of a
// State, the phase that the member gets, the result of an around-hook's continuation, and whether
// the run may stop there. Detection, dispatch and messages follow from that. A hook's number is its
// line: a bit of a mask, and never saved.
#define FRUGAL_HOOKS(HOOK)                                                  \
  HOOK(on, module, on_module, ModuleSetup, void, false)                     \
  HOOK(around, fit, around_fit, FitRun, void, false)                        \
  HOOK(on, fit_begin, on_fit_begin, FitBegin, void, true)                   \
  HOOK(on, ready, on_ready, Ready, void, false)                             \
  HOOK(around, epoch, around_epoch, EpochRun, void, false)                  \
  HOOK(on, epoch_begin, on_epoch_begin, EpochBegin, void, false)            \
  HOOK(on, window, on_window, WindowBegin, void, true)                      \
  HOOK(around, micro_batch, around_micro_batch, MicroBatchRun, void, false) \
  HOOK(around, forward, around_forward, Forward, Loss, false)               \
  HOOK(on, loss, on_loss, LossReady, void, false)                           \
  HOOK(on, backward, on_backward, Backward, void, false)                    \
  HOOK(on, gradients, on_gradients, Gradients, void, false)                 \
  HOOK(on, update, on_update, Update, void, false)                          \
  HOOK(on, step, on_step, Step, void, true)                                 \
  HOOK(around, validate, around_validate, ValidationRun, Metrics, false)    \
  HOOK(on, validated, on_validated, Validated, void, true)                  \
  HOOK(on, epoch_end, on_epoch_end, EpochEnd, void, true)                   \
  HOOK(on, fit_end, on_fit_end, FitEnd, void, false)                        \
  HOOK(on, undo, on_undo, WindowRetry, void, false)                         \
  HOOK(on, preempt, on_preempt, Preemption, void, false)                    \
  HOOK(on, recorded, on_recorded, Recorded, void, false)                    \
  HOOK(on, saved, on_saved, Saved, void, false)                             \
  HOOK(query, stop_requested, stop_requested, Phase, void, false)

struct Loss;
class Metrics;
#define FRUGAL_DECLARE_PHASE(form, tag, member, phase_type, ...) struct phase_type;
FRUGAL_HOOKS(FRUGAL_DECLARE_PHASE)
#undef FRUGAL_DECLARE_PHASE

namespace detail {
#define FRUGAL_NUMBER(form, tag, ...) form##_##tag,
namespace hook_number {
enum : unsigned { FRUGAL_HOOKS(FRUGAL_NUMBER) };
}
#undef FRUGAL_NUMBER
}  // namespace detail

#define FRUGAL_SIGNATURE_on(phase_type) "(" #phase_type "&)."
#define FRUGAL_SIGNATURE_around(phase_type) \
  "(" #phase_type " const&, auto&& next) and return next()."
#define FRUGAL_SIGNATURE_query(phase_type) "(" #phase_type " const&) and return a bool."

#define FRUGAL_DEFINE_HOOK(form_of_hook, tag, member, phase_type, result_of_next, stops)        \
  namespace form_of_hook {                                                                      \
  struct tag {                                                                                  \
    static constexpr std::string_view name = #member;                                           \
    static constexpr std::size_t index = detail::hook_number::form_of_hook##_##tag;             \
    static constexpr HookForm form = HookForm::form_of_hook;                                    \
    static constexpr bool may_stop = stops;                                                     \
    using phase = phase_type;                                                                   \
    struct continuation {                                                                       \
      result_of_next operator()() const;                                                        \
    };                                                                                          \
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
    FRUGAL_DIAGNOSTIC(unimplemented, "frugal: this policy listens to " #form_of_hook "::" #tag  \
                                     " and its State has no " #member                           \
                                     ". Write the member, or remove the hook from `listens`."); \
    FRUGAL_DIAGNOSTIC(undeclared, "frugal: this policy's State has " #member                    \
                                  " and it would never be called. Add " #form_of_hook "::" #tag \
                                  " to `listens`.");                                            \
    FRUGAL_DIAGNOSTIC(mistyped, "frugal: this policy's " #member                                \
                                " cannot be called with what the loop gives it. "               \
                                "Write " #member FRUGAL_SIGNATURE_##form_of_hook(phase_type));  \
    FRUGAL_DIAGNOSTIC(cannot_stop,                                                              \
                      "frugal: this policy's " #member                                          \
                      " returns a flow, and a run cannot stop there. Return void, and stop in " \
                      "on_fit_begin, on_window, on_step, on_validated or on_epoch_end.");       \
    FRUGAL_DIAGNOSTIC(                                                                          \
        misreturned,                                                                            \
        "frugal: this policy's " #member                                                        \
        " returns a value that the loop does not use. Return void; a flow where the run "       \
        "may end; what next() returns in an around-hook; a bool in a query.");                  \
  };                                                                                            \
  }

FRUGAL_HOOKS(FRUGAL_DEFINE_HOOK)
#undef FRUGAL_DEFINE_HOOK
#undef FRUGAL_SIGNATURE_on
#undef FRUGAL_SIGNATURE_around
#undef FRUGAL_SIGNATURE_query

namespace detail {
template <class, class... Hooks>
struct behind_first {
  using type = list<Hooks...>;
};
}  // namespace detail

/// All hooks. A policy can listen to these only.
#define FRUGAL_NAME(form, tag, ...) , form::tag
using all_hooks = detail::behind_first<void FRUGAL_HOOKS(FRUGAL_NAME)>::type;
#undef FRUGAL_NAME
#undef FRUGAL_HOOKS

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

}  // namespace frugal
