// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>

#include <concepts>
#include <functional>
#include <string_view>

#include <frugal/compose/services.hpp>
#include <frugal/error.hpp>
#include <frugal/run/objective.hpp>
#include <frugal/run/settings.hpp>

namespace frugal {

template <class Context>
struct SafePoint;

/// What processes that train one model together agree on, and how their values become one.
enum class Quantity {
  stop,           ///< a verdict, 0 or 1: the largest
  skip,           ///< a window is passed over, 0 or 1: the largest
  overflow,       ///< a gradient is not finite, 0 or 1: the largest
  window_weight,  ///< what a window's losses weigh: the sum
  loss,           ///< of an epoch or a validation, sums and weights: the sum
  metric,         ///< what a metric has counted: the sum
};

/// Of which the largest is taken; what is no verdict is added up, and NaN in one process is NaN in
/// all.
constexpr bool is_verdict(Quantity what) {
  return what == Quantity::stop || what == Quantity::skip || what == Quantity::overflow;
}

// What the loop asks of at most one policy of a recipe. A policy that provides one says so with
// `provides`; its State has what is called, or its value where that is said.
namespace service {

/// `bool save(SafePoint<Context>&)`       a checkpoint of this moment, on the disk when it returns
/// `double save_seconds() const`        that the last one took; 0 before it
struct save {
  static constexpr std::string_view name = "save";
  template <class P, class State, class Context>
  static constexpr bool met = requires(State& state, SafePoint<Context>& at) {
    { state.save(at) } -> std::same_as<bool>;
    { state.save_seconds() } -> std::convertible_to<double>;
  };
  FRUGAL_SENTENCE(unmet,
                  "frugal: this policy provides service::save, and its State lacks what that is. "
                  "Write `bool save(SafePoint<Context>&)` and `double save_seconds() const`.");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe save the run, and its folder has one "
                  "series of checkpoints. Take one of them out.");
};

/// `bool recover(SafePoint<Context>&, LossError const&)`  puts the run where it can go on; false if
///                                                      it cannot, and the error ends the run
struct recover {
  static constexpr std::string_view name = "recover";
  template <class P, class State, class Context>
  static constexpr bool met =
      requires(State& state, SafePoint<Context>& at, LossError const& error) {
        { state.recover(at, error) } -> std::same_as<bool>;
      };
  FRUGAL_SENTENCE(unmet,
                  "frugal: this policy provides service::recover, and its State lacks what that "
                  "is. Write `bool recover(SafePoint<Context>&, LossError const&)`.");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe take the run back after a bad loss, and it "
                  "can go to one place. Take one of them out.");
};

/// `c10::Device start_device(Settings const&) const`  where the module is before the first window;
///                                                 the State moves the run on (WindowBegin)
struct start_device {
  static constexpr std::string_view name = "start_device";
  template <class P, class State, class Context>
  static constexpr bool met = requires(State const& state, Settings const& settings) {
    { state.start_device(settings) } -> std::same_as<c10::Device>;
  };
  FRUGAL_SENTENCE(
      unmet,
      "frugal: this policy provides service::start_device, and its State lacks what that "
      "is. Write `c10::Device start_device(Settings const&) const`.");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe say where a run begins. Take one of them "
                  "out.");
};

/// `template <class Passes> class Executor` in the policy itself: how a window is executed
/// (loop/eager.hpp has the one that stands for all recipes without another)
struct execution {
  static constexpr std::string_view name = "execution";
  template <class P, class State, class Context>
  static constexpr bool met = requires { typename P::template Executor<int>; };
  FRUGAL_SENTENCE(unmet,
                  "frugal: this policy provides service::execution, and has no executor. Write "
                  "`template <class Passes> class Executor` in it.");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe each have a way of their own to execute a "
                  "window (Accumulate<Auto> splits it as memory asks, Graph<WholeStep> replays "
                  "it), and a window is executed once. Take one of them out.");
};

/// `bool capturing() const`             is the step being captured at this moment?
/// `void defer(std::function<void()>)`  to be called after each replay of what is captured
/// `at::Tensor const& rate() const`     the factor of the learning rates, on the device
/// `void state_has_moved()`             tensors that outlast a step are others than before
struct capture {
  static constexpr std::string_view name = "capture";
  template <class P, class State, class Context>
  static constexpr bool met = requires(State& state, std::function<void()> f) {
    { state.capturing() } -> std::same_as<bool>;
    state.defer(f);
    { state.rate() } -> std::convertible_to<at::Tensor>;
    state.state_has_moved();
  };
  FRUGAL_SENTENCE(unmet,
                  "frugal: this policy provides service::capture, and its State lacks what that "
                  "is: capturing(), defer(f), rate() and state_has_moved().");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe capture the step. Take one of them out.");
};

/// `double reduce(Quantity, double)`          of all processes, made one: each gets the same
/// `at::Tensor reduce(Quantity, at::Tensor)`  likewise, where the tensor is, without a wait
/// The loop asks for each at the same moments in all processes, so that a source has to give each
/// of them as many windows. A bad loss of one (LossError) ends the window in all.
struct reduce {
  static constexpr std::string_view name = "reduce";
  template <class P, class State, class Context>
  static constexpr bool met = requires(State& state, at::Tensor const& tensor) {
    { state.reduce(Quantity::stop, 0.0) } -> std::same_as<double>;
    { state.reduce(Quantity::overflow, tensor) } -> std::same_as<at::Tensor>;
  };
  FRUGAL_SENTENCE(unmet,
                  "frugal: this policy provides service::reduce, and its State lacks what that is. "
                  "Write `double reduce(Quantity, double)` and `at::Tensor reduce(Quantity, "
                  "at::Tensor)`.");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe make the processes agree. Take one of them "
                  "out.");
};

/// `void trained_on(Loss const&, B const& batch, bool first_of_window)`  hears of each micro-batch
///                     that is trained on, before its backward pass, whatever the batch's type;
///                     without gradients. It must not read tensors. A window that is made once more
///                     (on_undo) is heard of once more
struct measure {
  static constexpr std::string_view name = "measure";
  template <class P, class State, class Context>
  static constexpr bool met = requires(State& state, Loss const& loss, at::Tensor const& batch) {
    state.trained_on(loss, batch, true);
  };
  FRUGAL_SENTENCE(
      unmet,
      "frugal: this policy provides service::measure, and its State lacks what that is. "
      "Write `template <class B> void trained_on(Loss const&, B const&, bool)`.");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe measure the training batches. Name all "
                  "metrics in one.");
};

/// Of the value: `c10::Device chosen(c10::Device) const`, where a fit with that setting goes, and
/// `surround<Valid>(train, valid, fit) const`, which calls `fit` with sources of its own
struct placement {
  static constexpr std::string_view name = "placement";
  template <class P, class State, class Context>
  static constexpr bool met = requires(P const& policy, c10::Device device) {
    { policy.chosen(device) } -> std::same_as<c10::Device>;
  };
  FRUGAL_SENTENCE(unmet,
                  "frugal: this policy provides service::placement, and lacks what that is. Write "
                  "`c10::Device chosen(c10::Device) const` and `surround<Valid>(train, valid, "
                  "fit) const` in it.");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe say where its batches go. Take one of them "
                  "out.");
};

/// Of the value: `void after_fit(Report const&) const`, called when all else of a fit is over
struct ending {
  static constexpr std::string_view name = "ending";
  template <class P, class State, class Context>
  static constexpr bool met = true;  // called with a Report, which this does not know
  FRUGAL_SENTENCE(unmet, "frugal: this policy provides service::ending.");
  FRUGAL_SENTENCE(twice,
                  "frugal: two policies of this recipe say what comes after a fit. Take one of "
                  "them out.");
};

}  // namespace service

/// Are the steps of this recipe captured and replayed? Then what a policy does within a step has
/// to be done by operators alone: numbers of the host stay what they were at the capture.
template <class Policies>
inline constexpr bool captures_steps = detail::provided<service::capture, Policies>;

}  // namespace frugal
