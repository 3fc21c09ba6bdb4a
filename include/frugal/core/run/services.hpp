// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <frugal/core/compose/services.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/processes.hpp>
#include <frugal/error.hpp>

namespace frugal {

struct CheckpointPhase;
struct SharedWindow;
struct Phase;

// Services that the loop requests from at most one policy of a recipe. A policy declares them in
// `provides`; the called members belong to its State, or to its value where noted.
namespace service {

/// `bool save(CheckpointPhase&)`     checkpoints this moment; on disk when it returns
/// `double save_seconds() const`        duration of the last checkpoint; 0 before the first
struct save {
  static constexpr std::string_view name = "save";
  template <class P, class State>
  static constexpr bool met = requires(State& state, CheckpointPhase& at) {
    { state.save(at) } -> std::same_as<bool>;
    { state.save_seconds() } -> std::convertible_to<double>;
  };
  FRUGAL_DIAGNOSTIC(unmet,
                    "frugal: this policy provides service::save, and its State lacks the members. "
                    "Write `bool save(CheckpointPhase&)` and `double save_seconds() const`.");
  FRUGAL_DIAGNOSTIC(twice,
                    "frugal: two policies of this recipe save the run, and its folder holds one "
                    "series of checkpoints. Remove one of them.");
};

/// `bool recover(CheckpointPhase&, LossError const&)`  restores the run to a state from which it
/// can continue; if false, it cannot, and the error ends the run
struct recover {
  static constexpr std::string_view name = "recover";
  template <class P, class State>
  static constexpr bool met = requires(State& state, CheckpointPhase& at, LossError const& error) {
    { state.recover(at, error) } -> std::same_as<bool>;
  };
  FRUGAL_DIAGNOSTIC(
      unmet,
      "frugal: this policy provides service::recover, and its State lacks the member. "
      "Write `bool recover(CheckpointPhase&, LossError const&)`.");
  FRUGAL_DIAGNOSTIC(
      twice,
      "frugal: two policies of this recipe take the run back after a bad loss. Remove "
      "one of them.");
};

/// `template <class Passes> class Executor` in the policy itself: how a window is executed
/// (core/loop/executor.hpp has the default)
struct execution {
  static constexpr std::string_view name = "execution";
  template <class P, class State>
  static constexpr bool met = requires { typename P::template Executor<int>; };
  FRUGAL_DIAGNOSTIC(unmet,
                    "frugal: this policy provides service::execution, and has no executor. Write "
                    "`template <class Passes> class Executor` in it.");
  FRUGAL_DIAGNOSTIC(
      twice,
      "frugal: two policies of this recipe each execute windows in their own way (Accumulate<Auto> "
      "splits them to fit memory, CudaGraph<WholeStep> replays them). Remove one of them.");
};

/// `bool capturing() const`             whether the step is being captured now
/// `void defer(std::function<void()>)`  calls the function after each replay of the captured step
/// `at::Tensor const& rate() const`     the learning-rate factor, on the device
/// `void state_has_moved()`             tensors that persist over steps have been reallocated
struct capture {
  static constexpr std::string_view name = "capture";
  template <class P, class State>
  static constexpr bool met = requires(State& state, std::function<void()> f) {
    { state.capturing() } -> std::same_as<bool>;
    state.defer(f);
    { state.rate() } -> std::convertible_to<at::Tensor>;
    state.state_has_moved();
  };
  FRUGAL_DIAGNOSTIC(
      unmet,
      "frugal: this policy provides service::capture, and its State lacks the members. "
      "Write capturing(), defer(f), rate() and state_has_moved().");
  FRUGAL_DIAGNOSTIC(twice,
                    "frugal: two policies of this recipe capture the step. Remove one of them.");
};

/// `double reduce(Quantity, double)`          combines one value of each process; all get the same
/// `at::Tensor reduce(Quantity, at::Tensor)`  likewise, on the tensor's device, without a host sync
///
/// `using strategy`   of the policy: SummedWindows (cluster/summed_windows.hpp), or DividedWindows for what
///                    provides share as well
///
/// The loop calls each at the same moments in all processes, so a source must give every process
/// the same number of windows. A bad loss (LossError) in one process ends the window in all.
struct reduce {
  static constexpr std::string_view name = "reduce";
  template <class P, class State>
  static constexpr bool met = requires(State& state, at::Tensor const& tensor) {
    typename P::strategy;
    { state.reduce(Quantity::stop, 0.0) } -> std::same_as<double>;
    { state.reduce(Quantity::overflow, tensor) } -> std::same_as<at::Tensor>;
  };
  FRUGAL_DIAGNOSTIC(
      unmet,
      "frugal: this policy provides service::reduce, and its State lacks the members. Write "
      "`double reduce(Quantity, double)` and `at::Tensor reduce(Quantity, at::Tensor)`, and "
      "`using strategy = SummedWindows;` in the policy (cluster/summed_windows.hpp).");
  FRUGAL_DIAGNOSTIC(
      twice, "frugal: two policies of this recipe reduce over processes. Remove one of them.");
};

/// Divides the micro-batches of each window among processes. All of them then have the same cursor,
/// counters and losses, which are those of the whole window. Its provider also provides reduce.
///
/// `MicroBatches own(int micro_batches) const`  of the policy: those of this process, of the window's
/// `void join(SharedWindow&)`          of the State: after the process's own micro-batches, also
///                   if it has none in this window: replaces the gradients by the sums over all
///                   micro-batches, adds the records of the others, and says whether one asks for a
///                   preemption
/// `bool is_first() const`                      of the State: whether this process writes what a run
///                   has once
/// `std::string from_first(std::string const&)` of the State: the text of the first process; all call
///                   it at the same moments
///
/// `std::string first_of(std::string const&)`   of the State: the first text that is not empty, of the
///                   first process that has one; all call it at the same moments
/// `std::vector<at::Tensor> norms(Parameters const&)`   of the State: numbers whose norm is that of
///                   the gradients of all processes' parts; all call it at the same moments
/// `Processes processes() const`                of the State
/// `void collect_parts()`                       of the State: the optimizer has updated this process's
///                   parts (FitRun::update_parts)
///
/// Optional, of the State. Without the first two each process measures all of a validation.
///
/// `EqualShare measures() const`   the share of a validation's batches that this process measures
/// `std::vector<std::string> texts_of_all(std::string const&)`  the texts of all processes, in their
///                   order; all call it at the same moments
/// `void const* exchanges() const`   of the policy: what the processes exchange through, which two fits in
///                   two threads must not share
/// `static constexpr bool carries_scalars`   whether join() adds the scalars of the others' records
///
/// A process calls around::micro_batch for its own micro-batches alone, and each begins without
/// gradients.
struct share {
  static constexpr std::string_view name = "share";
  template <class P, class State>
  static constexpr bool met = requires(P const& policy, State& state, std::string const& text) {
    { policy.own(1) } -> std::same_as<MicroBatches>;
    { state.is_first() } -> std::same_as<bool>;
    { state.from_first(text) } -> std::same_as<std::string>;
    { state.first_of(text) } -> std::same_as<std::string>;
    state.collect_parts();
    { state.processes() } -> std::same_as<Processes>;
  };
  FRUGAL_DIAGNOSTIC(
      unmet,
      "frugal: this policy provides service::share, and lacks the members. Write `MicroBatches "
      "own(int) const` in it, and `Processes processes() const`, `void "
      "join(SharedWindow&)`, `bool is_first() const` and "
      "`std::string from_first(std::string const&)`, `first_of` likewise, `norms` and `void "
      "collect_parts()` in "
      "its State.");
  FRUGAL_DIAGNOSTIC(twice,
                    "frugal: two policies of this recipe divide its windows. Remove one of them.");
};

/// `void trained_on(Loss const&, B const& batch, bool first_of_window)`  gets each micro-batch of
///                     training, of any type, before its backward pass and without gradients. It
///                     must not read tensors. A window that is retried (on_undo) comes again
/// `void on_joined(Phase&)`  optional, where processes divide windows: in all of them, when
///                     the micro-batches of a window are trained, also if it had none here
struct measure {
  static constexpr std::string_view name = "measure";
  template <class P, class State>
  static constexpr bool met = requires(State& state, Loss const& loss, at::Tensor const& batch) {
    state.trained_on(loss, batch, true);
  };
  FRUGAL_DIAGNOSTIC(
      unmet,
      "frugal: this policy provides service::measure, and its State lacks the member. "
      "Write `template <class B> void trained_on(Loss const&, B const&, bool)`.");
  FRUGAL_DIAGNOSTIC(twice,
                    "frugal: two policies of this recipe measure the training batches. Name all "
                    "metrics in one.");
};

/// Members of the policy: `c10::Device chosen(c10::Device) const`, the device of a fit with that
/// setting, and `surround<Valid>(train, valid, fit) const`, which calls `fit` with its own sources
struct placement {
  static constexpr std::string_view name = "placement";
  template <class P, class State>
  static constexpr bool met = requires(P const& policy, c10::Device device) {
    { policy.chosen(device) } -> std::same_as<c10::Device>;
  };
  FRUGAL_DIAGNOSTIC(
      unmet,
      "frugal: this policy provides service::placement, and lacks the members. Write `c10::Device "
      "chosen(c10::Device) const` and `surround<Valid>(train, valid, fit) const` in it.");
  FRUGAL_DIAGNOSTIC(twice,
                    "frugal: two policies of this recipe place its batches. Remove one of them.");
};

/// Member of the State: `void before_fit(bool dry)`, called as the very first part of a fit, or of a dry
/// run, which is `dry`: for what takes hold of the process. States exist in an evaluation and in a
/// prediction as well, which do not call it.
struct before_fit {
  static constexpr std::string_view name = "before_fit";
  template <class P, class State>
  static constexpr bool met = requires(State& state) { state.before_fit(true); };
  FRUGAL_DIAGNOSTIC(unmet,
                    "frugal: this policy provides service::before_fit, and its State lacks the "
                    "member. Write `void before_fit(bool dry)`.");
  FRUGAL_DIAGNOSTIC(twice,
                    "frugal: two policies of this recipe act before a fit. Remove one of them.");
};

/// Member of the policy: `void after_fit(Report const&) const`, called as the very last part of a
/// fit
struct after_fit {
  static constexpr std::string_view name = "after_fit";
  template <class P, class State>
  static constexpr bool met = true;  // called with a Report, which this does not know
  FRUGAL_DIAGNOSTIC(
      unmet,
      "frugal: this policy provides service::after_fit, and lacks the member. Write `void "
      "after_fit(Report const&) const`.");
  FRUGAL_DIAGNOSTIC(twice,
                    "frugal: two policies of this recipe act after a fit. Remove one of them.");
};

}  // namespace service

/// Whether this recipe captures and replays its steps. If so, everything that a policy does within
/// a step must be tensor operators: host numbers keep their values from the capture.
template <class Policies>
inline constexpr bool captures_steps = detail::provided<service::capture, Policies>;

}  // namespace frugal
