// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/hooks.hpp>

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
  NEAR(on_checkpoint, "persist() for what a checkpoint keeps; no hook is called for a save")      \
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
