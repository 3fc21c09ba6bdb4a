// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/phase.hpp>
#include <frugal/core/run/scalars.hpp>

namespace frugal {

class GradientList;

// The arguments of hooks within a window, in the order of a window.

/// Before the first batch of a window is read.
struct WindowBegin : CheckpointPhase {
  using CheckpointPhase::CheckpointPhase;

  /// Skips the window: its samples are consumed without training, and it is no step.
  void skip() { skipped_ = true; }
  bool skipped() const { return skipped_; }
  /// Moves the run to another device: the module, and the tensors of every State.
  void move_to(c10::Device device);
  /// SettingsError for a factor that is negative or not finite.
  void set_learning_rate_factor(double factor);

 private:
  bool skipped_ = false;
};

/// Around one micro-batch of a window: its forward and backward pass.
struct MicroBatchRun : Phase {
  MicroBatchRun(RunState& run, bool is_first, bool is_last)
      : Phase(run), first(is_first), last(is_last) {}

  bool const first;  ///< of its window: there are no gradients yet
  bool const last;   ///< after it the window's gradients are complete
  /// In a window that processes divide, for who takes gradients during a backward pass: what they
  /// are still to be multiplied by then. Afterwards they have been.
  double const& gradient_unit() const;
};

/// Around the objective of one micro-batch, or of one validation batch.
struct Forward : Phase {
  Forward(RunState& run, bool is_training) : Phase(run), training(is_training) {}

  bool const training;
};

/// The loss of a micro-batch is computed; its backward pass has not begun.
struct LossReady : Phase {
  LossReady(RunState& run, Loss& the_loss, at::Tensor& the_seed)
      : Phase(run), loss(the_loss), seed(the_seed) {}

  Loss& loss;
  /// The gradient that backward starts from: the micro-batch's share of its window. Loss scaling
  /// multiplies this, at the cost of no operator.
  at::Tensor& seed;
};

/// The micro-batch's gradients have been added to those of its window.
struct Backward : Phase {
  using Phase::Phase;
};

/// A phase whose work a recipe with CudaGraph captures once and replays: the host code does not run
/// again.
struct Captured : Phase {
  using Phase::Phase;

  /// Calls `f(phase)` now or, if the step is being captured, after each replay. For host work in
  /// every step; `f` may only refer to objects that live as long as the fit.
  template <class Now, class F>
  void on_host_as(F f) {
    if (!is_being_captured()) return f(static_cast<Now&>(*this));
    after_each_replay([run = &run(), f]() mutable {
      Now now(*run);
      f(now);
    });
  }

 private:
  bool is_being_captured() const;
  void after_each_replay(std::function<void()> call);
};

/// The loss and the counts of one micro-batch of a window.
struct MicroBatchRecord {
  at::Tensor loss{};  ///< a scalar, without a graph
  double weight = 0;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  Scalars scalars{};
};

/// This process's micro-batches of a window that processes divide are trained (service::share).
struct SharedWindow : Phase {
  SharedWindow(RunState& run, std::vector<MicroBatchRecord>& all, bool asked, bool is_bad)
      : Phase(run), records(all), preempts(asked), fails(is_bad) {}

  /// Of this process's micro-batches; becomes those of all, in the window's order.
  std::vector<MicroBatchRecord>& records;
  /// Whether this process asks for a preemption; becomes whether one of all does.
  bool preempts;
  /// Whether a policy of this process has refused a loss; becomes whether one of all has.
  bool fails;
  /// Samples of the epoch up to the window's end, as this process has read them.
  std::uint64_t consumed = 0;
};

/// The window's gradients are complete: reduce, unscale, clip.
struct Gradients : Captured {
  /// `does_count`: false in a trial step and in a line search, whose numbers may be bad.
  explicit Gradients(RunState& run, bool does_count = true) : Captured(run), counts_(does_count) {}
  /// See Captured.
  template <class F>
  void on_host(F f) {
    on_host_as<Gradients>(std::move(f));
  }
  /// Gradients in parameter order, without parameters that received none.
  std::vector<at::Tensor> const& gradients() const;
  /// Numbers whose norm is that of all gradients: in a run that processes divide, the norms of blocks
  /// of parameters, the same in each; otherwise those of the tensors.
  std::vector<at::Tensor> norms() const;
  /// Reports their total norm before clipping to loggers: a number, or a scalar on a device. Unless
  /// a policy has reported an overflow flag before, which skips such a window, a norm that is not
  /// finite is a NonFiniteGradientError: a number's now, a scalar's when losses are read.
  void report_norm(double norm);
  void report_norm(at::Tensor norm);
  /// Reports to the optimizer whether a gradient is not finite: a float scalar, 1 if so, which may
  /// still be in flight. If so, the optimizer does not change the weights.
  void report_overflow(at::Tensor found);
  /// The last flag that was reported; undefined in a recipe where nobody does.
  at::Tensor const& overflow() const;
  /// This window is no step: schedules and cadences do not advance, and no subscriber of `step`
  /// sees it.
  void skip_step();

 private:
  void look_at_norm(double norm);
  void look_at_norm(at::Tensor const& norm);

  bool counts_;
};

/// The optimizer updates the weights.
struct Update : Captured {
  using Captured::Captured;
  /// See Captured.
  template <class F>
  void on_host(F f) {
    on_host_as<Update>(std::move(f));
  }
  /// The learning-rate factor as a double scalar on the parameters' device, in a recipe with CudaGraph,
  /// which fills it before each step.
  at::Tensor const& learning_rate_tensor() const;
  /// In a recipe with CudaGraph: tensors that persist over steps have been reallocated, so the captured
  /// step must not be replayed.
  void state_has_moved() const;

  /// For an optimizer whose parameter groups have schedules of their own, and are as reported
  /// (FitBegin::report_learning_rates): the factor of one of them in this step.
  void report_group_factor(std::size_t group, double factor);

  GradientList const& gradients() const;
  /// For an optimizer, after it has updated the weights: in a run whose processes each update a part
  /// of them, the others' parts come in. Whoever is called later sees all weights.
  void collect_parts();
  /// The flag from report_overflow(); undefined if no policy skips windows.
  at::Tensor const& overflow() const;
  /// The window's mean loss, for an optimizer that declares `reevaluates`.
  at::Tensor const& loss() const;
  /// Recomputes the window's loss and gradients at the current weights, for optimizers with a line
  /// search. Returns the loss.
  at::Tensor reevaluate();
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/window_phases.ipp>
#endif
