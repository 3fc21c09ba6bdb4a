// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/compose/about.hpp>
#include <frugal/compose/composition.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/data/source.hpp>
#include <frugal/libtorch/capture_backend.hpp>
#include <frugal/libtorch/cuda_capture.hpp>  // IWYU pragma: keep
#include <frugal/loop/recipe_traits.hpp>
#include <frugal/policy/graph/capturable.hpp>
#include <frugal/policy/graph/captured_step.hpp>
#include <frugal/policy/graph/eager.hpp>  // IWYU pragma: keep
#include <frugal/policy/graph/executor.hpp>
#include <frugal/policy/graph/shapes.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/run/phases.hpp>

namespace frugal {

/// What Graph captures: all of an optimizer step.
struct WholeStep {};

#ifdef FRUGAL_CUDA
using DefaultCapture = CudaCapture;
#else
using DefaultCapture = NoCapture;
#endif

/// Captures a step's work for the GPU once and replays it: forward, backward, unscaling, clipping,
/// the optimizer with its learning rate, and the average.
///
/// Lever   hours per run: small steps, whose kernels are shorter than their launches.
/// Cost    memory: the activations, the gradients and one batch stay where they were captured, and
///         a window's batches are all read before it begins. A copy of each batch per step.
/// State   none that is saved: a resumed run warms up and captures anew, in the same bits.
/// Errors  SettingsError on a device that has no graphs, for parameters on other devices and for
///         warm_up below 1. A recipe with host syncs, or with a policy that does not say it can be
///         captured, does not compile. What cannot be captured at run time goes on eagerly, and
///         the report's advice has the reason.
/// Source  torch.cuda.graph, as whole-network capture of PyTorch's notes on CUDA graphs.
///
/// The first windows run eagerly on a side stream. Then the step is captured for their shapes. A
/// window of other shapes, or of fewer micro-batches, runs eagerly, and the next ones are replayed
/// again; after `warm_up` windows in a row of one other shape the step is captured for that.
template <class What = WholeStep, class Backend = DefaultCapture>
struct Graph {
  static_assert(std::same_as<What, WholeStep>,
                "frugal: Graph is told what it captures, and that is the whole step. Write "
                "Graph<WholeStep>.");
  static_assert(CaptureBackend<Backend>,
                "frugal: Graph's second argument captures and replays. Leave it out for CUDA, or "
                "give a type that is a frugal::CaptureBackend.");
  using kind = kinds::execution;
  using listens = list<on::module, on::fit_begin>;
  using provides = list<service::execution, service::capture>;
  using demands =
      list<detail::WaitsForNothing, detail::Capturable, detail::Replayable, detail::Placeable>;

  static constexpr About about{
      Term::hours_per_run,
      "one copy of each batch per step; activations and gradients stay in memory"};

  int warm_up = 3;        ///< windows that run eagerly before a capture
  int most_captures = 8;  ///< for other shapes; the last one is kept
  /// What the module or the objective draws from, beside the device's own generator.
  std::vector<at::Generator> generators{};
  Backend backend{};

  template <class Passes>
  using Executor = detail::CapturedExecutor<Passes>;

  template <class Context>
  class State;
};

template <class What, class Backend>
template <class Context>
class Graph<What, Backend>::State {
  static constexpr std::size_t micro_batches = detail::traits_of<Context>::batches;

 public:
  // What was captured belongs to the process. Loaded state lies elsewhere than that of before.
  using dispensable = void;
  template <class Archive>
  void persist(Archive&) {
    if (Archive::loading) loaded_ = true;
  }

  explicit State(Graph const& settings)
      : warm_up_(settings.warm_up),
        captures_left_(settings.most_captures),
        step_(settings.backend, settings.generators) {}

  // Before the module goes there.
  void on_module(Assembly<Context> const& phase) { Backend::require(phase.settings().device); }

  void on_fit_begin(FitBegin<Context>& phase) {
    c10::Device const device = phase.settings().device;
    require_settings();
    for (at::Tensor const& each : phase.parameters().tensors) require_on(device, each);
    at::Tensor const& some = phase.parameters().tensors.front();
    rate_ = at::zeros({}, some.options().dtype(at::kDouble).requires_grad(false));
    step_.backend().begin(device);
  }

  // For phases, within a step.
  bool capturing() const { return step_.capturing(); }
  void defer(std::function<void()> f) { step_.defer(std::move(f)); }
  at::Tensor const& rate() const { return rate_; }
  void state_has_moved() { moved_ = true; }

  /// Called by the executor with the batches of a window: is it to be replayed? Captures it before,
  /// if its time has come; then `pass(batch, times)` is the forward and backward of a batch that
  /// stands for so many of the window, and `update()` all that follows them.
  template <class Batch, class Source, class Pass, class Update>
  bool ready(Run<Context>& run, std::vector<Batch> const& batches, Source& source, Pass&& pass,
             Update&& update) {
    static_assert(detail::has_each_tensor<Batch>,
                  "frugal: Graph copies batches into tensors that stay, and does not know those of "
                  "this batch type. Write batch_traits<B>::each_tensor(batch, f).");
    at::NoGradGuard const no_gradients;
    warming_ = false;
    set_rate(run.rate.factor * run.rate.scale);
    bool const moved = std::exchange(moved_, false) && !step_.empty();
    if (std::exchange(loaded_, false) || moved) forget();
    if (given_up_) return false;
    if (!of_one_shape(batches)) {
      tell_once(run, told_ragged_,
                "a window of fewer micro-batches, or of several shapes, ran eagerly: the graph is "
                "for " +
                    std::to_string(micro_batches) + " of one shape");
      return false;
    }
    if (!step_.empty() && shapes_ == captured_) {
      coming_.clear();
      return true;
    }
    if (shapes_ != coming_) {
      coming_ = shapes_;
      seen_ = 0;
      if (!step_.empty()) {
        tell_once(run, told_shape_,
                  "a window of batches " + detail::shapes_text(batches.front()) +
                      " ran eagerly: the graph is for " + captured_text_);
      }
    }
    if (captures_left_ <= 0) {
      if (step_.empty()) {
        tell_once(run, told_spent_,
                  "the step was captured as often as most_captures says, and goes on eagerly");
      }
      return false;
    }
    if (seen_ < warm_up_) {
      ++seen_;
      warming_ = true;
      return false;
    }
    return capture(run, batches.front(), source, pass, update);
  }

  /// Runs a window that was not ready; `body` returns its weight.
  template <class Body>
  void eagerly(Run<Context>& run, Body&& body) {
    if (!warming_) {
      body();
      return;
    }
    double weight = 0;
    step_.backend().on_side_stream([&] { weight = body(); });
    if (seen_ > 1 && weight != window_weight_) give_up_on_weights(run);
    window_weight_ = weight;
  }

  /// Replays a window that was ready. `count(batch, loss, weight)` hears of each micro-batch.
  template <class Batch, class Count>
  void replay(std::vector<Batch> const& batches, Count&& count) {
    step_.replay(batches, count);
  }
  /// What policies have left for the host to do after each replay.
  void tell_host() const { step_.tell_host(); }

 private:
  template <class Batch>
  bool of_one_shape(std::vector<Batch> const& batches) {
    shapes_.read(batches.front());
    for (std::size_t i = 1; i < batches.size(); ++i) {
      other_.read(batches[i]);
      if (other_ != shapes_) return false;
    }
    return batches.size() == micro_batches;
  }

  template <class Batch, class Source, class Pass, class Update>
  bool capture(Run<Context>& run, Batch const& like, Source& source, Pass& pass, Update& update) {
    Paused<Source> const paused(source);
    if (!paused) return false;
    --captures_left_;
    try {
      step_.capture(run, like, pass, update);
    } catch (std::exception const& error) {
      give_up(run, error.what());
      return false;
    }
    if (std::exchange(moved_, false)) {
      // What was made within the capture would be made anew by every replay.
      forget();
      return false;
    }
    if (step_.window_weight() != window_weight_) {
      give_up_on_weights(run);
      return false;
    }
    captured_ = shapes_;
    captured_text_ = detail::shapes_text(like);
    return true;
  }

  void set_rate(double factor) {
    if (factor == factor_) return;
    rate_.fill_(factor);
    factor_ = factor;
  }

  void forget() {
    step_.forget();
    captured_.clear();
    coming_.clear();
    seen_ = 0;
  }

  void tell_once(Run<Context>& run, bool& told, std::string const& what) {
    if (std::exchange(told, true)) return;
    run.advise("Graph: " + what);
  }

  void give_up(Run<Context>& run, std::string const& reason) {
    forget();
    given_up_ = true;
    run.advise("Graph: the run goes on eagerly, since the step cannot be captured: " + reason);
  }
  void give_up_on_weights(Run<Context>& run) {
    give_up(run,
            "the objective weighs batches of one shape differently; return the same "
            "Loss::weight for them, or take Graph out");
  }

  void require_settings() const {
    if (warm_up_ >= 1 && captures_left_ >= 1) return;
    throw SettingsError({.what = "warm_up is " + std::to_string(warm_up_) +
                                 ", and most_captures is " + std::to_string(captures_left_),
                         .where = "Graph",
                         .why = "what a step makes once has to be there before it is captured",
                         .fix = "Set 1 or more; 3 and 8 are the defaults."});
  }
  static void require_on(c10::Device device, at::Tensor const& parameter) {
    if (parameter.device().type() == device.type() &&
        (!device.has_index() || parameter.device() == device)) {
      return;
    }
    throw SettingsError(
        {.what = "a parameter is on " + parameter.device().str(),
         .where = "Graph<WholeStep>",
         .why = "a graph belongs to one device, and Settings::device is " + device.str(),
         .fix = "Put the whole module there, or take Graph<WholeStep> out."});
  }

  int warm_up_;
  int captures_left_;
  detail::CapturedStep<Backend, micro_batches> step_;
  at::Tensor rate_;
  double factor_ = 0;

  detail::Shapes shapes_, other_;  // of the window at hand
  detail::Shapes captured_, coming_;
  std::string captured_text_;
  int seen_ = 0;              // windows in a row of the shape that is to be captured
  double window_weight_ = 0;  // of the last of these
  bool warming_ = false;
  bool moved_ = false;   // tensors of the optimizer are others than in the last step
  bool loaded_ = false;  // likewise, and what a first step makes has to be made once more
  bool given_up_ = false;
  bool told_ragged_ = false;
  bool told_shape_ = false;
  bool told_spent_ = false;
};

}  // namespace frugal
