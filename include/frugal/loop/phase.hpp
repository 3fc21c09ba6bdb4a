// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <utility>
#include <vector>

#include <frugal/compose/engine.hpp>
#include <frugal/loop/captures.hpp>
#include <frugal/loop/objective.hpp>
#include <frugal/loop/run.hpp>

namespace frugal {

template <class Context>
class Phase;

namespace detail {
/// The run behind a phase, for those parts of frugal that are compiled once for all recipes.
template <class Context>
AnyRun& run_of(Phase<Context> const& phase) {
  return phase.run();
}
}  // namespace detail

// What a hook is given. Each phase offers what exists at that moment and nothing else, so that
// asking for the loss before there is one does not compile.

/// What every phase offers.
template <class Context>
class Phase {
 public:
  explicit Phase(Run<Context>& run) : run_(&run) {}

  auto& module() const { return run_->module; }
  Settings const& settings() const { return run_->settings; }
  Counters const& counters() const { return run_->counters; }
  Parameters const& parameters() const { return run_->parameters; }
  /// What the optimizer multiplies its learning rates with.
  double learning_rate_factor() const { return run_->rate.factor * run_->rate.scale; }
  /// Wall time of training, that before a resume included.
  double seconds() const { return run_->seconds(); }
  /// One line for the user, given once and never as an exception.
  void advise(std::string const& text) const { run_->advise(text); }
  /// What happened to the run itself, for those who log.
  void record(Event event) const { run_->record(std::move(event)); }
  std::vector<Event> const& events() const { return run_->events; }

 protected:
  Run<Context>& run() const { return *run_; }

 private:
  friend AnyRun& detail::run_of<Context>(Phase const& phase);

  Run<Context>* run_;
};

/// A moment at which a run can be saved, for all state is at rest.
template <class Context>
struct Resting : Phase<Context> {
  using Phase<Context>::Phase;

  Horizon const& horizon() const { return this->run().horizon; }
  std::vector<Validation> const& validations() const { return this->run().validations; }
  /// Loads or saves where training stands and every policy's state (not the module's tensors).
  void persist(MemoryWriter& archive) { this->run().persist(archive); }
  void persist(MemoryReader& archive) { this->run().persist(archive); }
  /// The event that was broken off at this moment, if one was (Unfinished::hook).
  std::uint64_t unfinished() const { return this->run().unfinished.hook; }
  /// On top of what the schedule says, until it is set again.
  double learning_rate_scale() const { return this->run().rate.scale; }
  void set_learning_rate_scale(double scale) { this->run().rate.scale = scale; }
  /// Seconds that a checkpoint took; 0 where none was made yet.
  double save_seconds() const {
    return this->run().save_seconds ? this->run().save_seconds() : 0.0;
  }
  /// Files that policies write to, and that a checkpoint has to find on the disk.
  std::vector<std::filesystem::path> const& files() const { return this->run().files; }
};

/// Before the first batch: the module is on its device, no state has been used.
template <class Context>
struct FitBegin : Resting<Context> {
  using Resting<Context>::Resting;

  bool validates() const { return static_cast<bool>(this->run().validate); }
  void set_learning_rate_factor(double factor) { this->run().rate.factor = factor; }
  /// Runs forward and backward on some batches and undoes what they touched.
  std::vector<Check> rehearse(std::size_t batches) { return this->run().rehearse(batches); }
  /// What has to be found out before the first step is found out now: a checkpoint of the beginning
  /// is to have it.
  void settle() {
    if (this->run().settle) this->run().settle();
  }
  /// A file that grows with the run: a checkpoint that counts on it makes it durable first.
  void writes_to(std::filesystem::path file) { this->run().files.push_back(std::move(file)); }
  /// Training goes on from a checkpoint at which it had taken `seconds`.
  void resumed(Resumed what, double seconds) { this->run().go_on(std::move(what), seconds); }
};

/// At the start of an epoch; not when a resumed run enters one in its middle.
template <class Context>
struct EpochBegin : Phase<Context> {
  using Phase<Context>::Phase;
};

/// Around the objective of one micro-batch, or of one batch of a validation.
template <class Context>
struct Forward : Phase<Context> {
  Forward(Run<Context>& run, bool is_training) : Phase<Context>(run), training(is_training) {}

  bool const training;
  c10::Device device() const { return this->run().device; }
};

/// The loss of a micro-batch is there and its backward pass is not.
template <class Context>
struct LossReady : Phase<Context> {
  LossReady(Run<Context>& run, Loss& the_loss, at::Tensor& the_seed)
      : Phase<Context>(run), loss(the_loss), seed(the_seed) {}

  Loss& loss;
  /// The gradient that backward starts from: the micro-batch's share of its window. A policy
  /// that scales the loss scales this, at no cost of an operator.
  at::Tensor& seed;
};

/// The micro-batch's gradients have been added to those of its window.
template <class Context>
struct Backward : Phase<Context> {
  using Phase<Context>::Phase;
};

/// A phase whose work a recipe with Graph captures once and replays: the host is not asked again.
template <class Context>
struct Captured : Phase<Context> {
  using Phase<Context>::Phase;

  /// Calls `f(phase)`: now, and where the step is being captured after each replay instead. For
  /// what the host has to do in every step, by members that live as long as the fit.
  template <template <class> class Phase, class F>
  void on_host_as(F f) {
    if constexpr (captures_steps<typename Context::policies>) {
      auto& graph = this->run().engine->template state<kinds::execution>();
      if (graph.capturing()) {
        graph.defer([run = &this->run(), f]() mutable {
          Phase<Context> phase(*run);
          f(phase);
        });
        return;
      }
    }
    f(static_cast<Phase<Context>&>(*this));
  }
};

/// The window's gradients are complete: reduce, unscale, clip.
template <class Context>
struct Gradients : Captured<Context> {
  using Captured<Context>::Captured;
  /// See Captured.
  template <class F>
  void on_host(F f) {
    this->template on_host_as<frugal::Gradients>(std::move(f));
  }
  /// Gradients in parameter order, without those parameters that have none.
  std::vector<at::Tensor> const& gradients() const { return this->run().gradients.tensors(); }
  /// Tells those who log it their total norm before clipping: a number, or a scalar on a device.
  template <class Norm>
  void report_norm(Norm&& norm) {
    if constexpr (captures_steps<typename Context::policies>) {
      on_host([norm](Gradients& now) { now.run().gradient_norm.set(norm); });
    } else {
      this->run().gradient_norm.set(std::forward<Norm>(norm));
    }
  }
  /// Tells the optimizer whether a gradient is not finite: a float scalar, 1 if so, that may still
  /// be on its way. The optimizer then leaves the weights alone.
  void report_overflow(at::Tensor found) { this->run().overflow.found = std::move(found); }
  /// This window is no step: neither schedules nor cadences go on, and no subscriber of `step`
  /// hears of it.
  void skip_step() { this->run().overflow.skip = true; }
};

/// The optimizer's turn.
template <class Context>
struct Update : Captured<Context> {
  using Captured<Context>::Captured;
  /// See Captured.
  template <class F>
  void on_host(F f) {
    this->template on_host_as<frugal::Update>(std::move(f));
  }
  /// The factor of the learning rates as a double scalar where the parameters are; in a recipe
  /// with Graph, which has it filled before each step.
  at::Tensor const& learning_rate_tensor() const {
    return this->run().engine->template state<kinds::execution>().rate();
  }
  /// In a recipe with Graph: tensors that outlast the step are others than in the last one, so
  /// that what was captured must not be replayed.
  void state_has_moved() const {
    if constexpr (captures_steps<typename Context::policies>) {
      this->run().engine->template state<kinds::execution>().move();
    }
  }

  GradientList const& gradients() const { return this->run().gradients; }
  /// What report_overflow() was told; undefined where nobody looks.
  at::Tensor const& overflow() const { return this->run().overflow.found; }
  /// The window's mean loss, for an optimizer that says it `reevaluates`.
  at::Tensor const& loss() const { return this->run().window_loss; }
  /// Computes the window's loss and gradients once more at the present weights, for optimizers
  /// that search along a line. Returns the loss.
  at::Tensor reevaluate() { return this->run().reevaluate(); }
};

/// An optimizer step is complete and counted.
template <class Context>
struct Step : Resting<Context> {
  using Resting<Context>::Resting;

  void set_learning_rate_factor(double factor) { this->run().rate.factor = factor; }
  /// Waits for a device if the losses are on one: at a cadence, not at every step.
  double last_loss() { return this->run().ledger.last(); }
  double mean_loss() { return this->run().ledger.mean(); }
  /// The gradients' norm before clipping, where a policy such as ClipNorm takes it; may wait too.
  GradientNorm const& gradient_norm() const { return this->run().gradient_norm; }
  /// How fast the run is, where a policy such as Throughput measures it.
  std::optional<Speed> const& speed() const { return this->run().speed; }
  void report_speed(Speed const& speed) { this->run().speed = speed; }
  /// Validates now, if there is validation data, and returns what the subscribers say.
  flow validate() { return this->run().validate ? this->run().validate() : flow::proceed; }
  /// Has Checkpoint save now, and waits until the disk has it. False if it could not, and goes on
  /// all the same (OnFailure::GoOn), and in a recipe without Checkpoint.
  bool save() { return this->run().save && this->run().save(); }
  /// The run ends here and is to be gone on with: its report says so.
  void preempt() { this->run().preempted = true; }
};

/// Around a whole validation.
template <class Context>
struct ValidationRun : Phase<Context> {
  using Phase<Context>::Phase;
};

/// Every metric of a validation is final.
template <class Context>
struct Validated : Phase<Context> {
  Validated(Run<Context>& run, Metrics const& measured) : Phase<Context>(run), metrics(measured) {}

  Metrics const& metrics;
  void set_learning_rate_factor(double factor) { this->run().rate.factor = factor; }
};

/// An epoch is complete and counted; its losses are still in the ledger.
template <class Context>
struct EpochEnd : Step<Context> {
  using Step<Context>::Step;
};

/// The run has ended by itself or by a verdict, not by an exception.
template <class Context>
struct FitEnd : Resting<Context> {
  using Resting<Context>::Resting;
  std::string const& stopped_by() const { return this->run().stopped_by; }
  bool preempted() const { return this->run().preempted; }
};

/// A window's forward and backward passes did not come to their end and are made anew: who counts
/// in around_forward, on_loss or on_backward goes back to what the window before has left.
template <class Context>
struct Undo : Phase<Context> {
  using Phase<Context>::Phase;
};

namespace detail {

template <class Hook, class Context>
struct phase_of;
template <class C>
struct phase_of<on::fit_begin, C> : std::type_identity<FitBegin<C>> {};
template <class C>
struct phase_of<on::epoch_begin, C> : std::type_identity<EpochBegin<C>> {};
template <class C>
struct phase_of<around::forward, C> : std::type_identity<Forward<C>> {};
template <class C>
struct phase_of<on::loss, C> : std::type_identity<LossReady<C>> {};
template <class C>
struct phase_of<on::backward, C> : std::type_identity<Backward<C>> {};
template <class C>
struct phase_of<on::gradients, C> : std::type_identity<Gradients<C>> {};
template <class C>
struct phase_of<on::update, C> : std::type_identity<Update<C>> {};
template <class C>
struct phase_of<on::step, C> : std::type_identity<Step<C>> {};
template <class C>
struct phase_of<around::validate, C> : std::type_identity<ValidationRun<C>> {};
template <class C>
struct phase_of<on::validated, C> : std::type_identity<Validated<C>> {};
template <class C>
struct phase_of<on::epoch_end, C> : std::type_identity<EpochEnd<C>> {};
template <class C>
struct phase_of<on::fit_end, C> : std::type_identity<FitEnd<C>> {};
template <class C>
struct phase_of<on::undo, C> : std::type_identity<Undo<C>> {};

// What an around-hook's `next` returns.
struct LossContinuation {
  Loss operator()() const;
};
struct MetricsContinuation {
  Metrics operator()() const;
};

}  // namespace detail

/// The types a policy's State is written against: the module, the recipe, the phases.
template <class Module, class... Ps>
struct Context {
  using module_type = Module;
  using policies = list<Ps...>;
  using engine = Engine<Context, Ps...>;
  template <class Hook>
  using phase = typename detail::phase_of<Hook, Context>::type;
  template <class Hook>
  using continuation = std::conditional_t<std::same_as<Hook, around::forward>,
                                          detail::LossContinuation, detail::MetricsContinuation>;
};

}  // namespace frugal
