// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/capture_backend.hpp>
#include <frugal/core/libtorch/cuda_capture.hpp>
#include <frugal/core/loop/passes.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/policy/cuda_graph/captured_step.hpp>
#include <frugal/policy/cuda_graph/eager.hpp>  // IWYU pragma: keep
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>

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

namespace frugal::detail {

/// Executes a window of a recipe with CudaGraph. Reads all its batches first, because it is replayed as
/// a whole or not at all.
template <class Passes>
class CapturedExecutor {
  using Context = typename Passes::Context;
  using Batch = typename Passes::Batch;

 public:
  explicit CapturedExecutor(Passes& passes) : passes_(passes) {}

  template <class Source>
  void set_up(Source&, Cursor) {}

  template <class Source>
  StepOutcome train(Source& source) {
    std::vector<Batch> batches;
    for (int k = 0; k < passes_.batches(); ++k) {
      auto batch = source.next();
      if (!batch) break;
      batches.push_back(std::move(*batch));
    }
    if (batches.empty()) return StepOutcome::nothing;

    auto& run = passes_.run();
    auto& graph = run.engine->template provider<service::capture>();
    auto const pass = [&](Batch const& batch, int times) { return passes_.capture(batch, times); };
    passes_.open();
    bool const replayed =
        graph.ready(run, batches, source, pass, [&] { passes_.template update<HookScope::all>(); });
    passes_.open();
    if (replayed) {
      graph.replay(batches, [&](Batch const& batch, at::Tensor const& loss, double weight,
                                Scalars const& scalars) {
        passes_.add_replayed(batch, loss, weight, scalars);
      });
      passes_.count();
      graph.update_host();
      return passes_.close();
    }
    StepOutcome trained = StepOutcome::nothing;
    graph.eagerly(run, [&] {
      for (std::size_t i = 0; i < batches.size(); ++i) {
        passes_.template train<HookScope::all>(batches[i],
                                               {.first = i == 0, .last = i + 1 == batches.size()});
      }
      trained = passes_.finish();
      return passes_.weight();
    });
    return trained;
  }

  /// Unused: an optimizer that reevaluates cannot be captured.
  static at::Tensor reevaluate() { return {}; }

 private:
  Passes& passes_;
};

}  // namespace frugal::detail

namespace frugal {

/// What CudaGraph captures: a whole optimizer step.
struct WholeStep {};

namespace detail::option {

struct whole_step {
  template <class O>
  static constexpr bool has = std::same_as<O, WholeStep>;
};
struct capture_backend {
  template <class O>
  static constexpr bool has = CaptureBackend<O>;
};

}  // namespace detail::option

#ifdef FRUGAL_CUDA
using DefaultCapture = CudaCapture;
#else
using DefaultCapture = NoCapture;
#endif

/// Captures a step's work for the GPU once and replays it (CUDA graphs): forward, backward,
/// unscaling, clipping, the optimizer with its learning rate, and the average.
///
/// Lever   hours per run: small steps, whose kernels are shorter than their launches.
/// Cost    memory: activations, gradients and one batch stay allocated, and a window's batches are
///         all read before it begins. One copy of each batch per step.
/// State   none that is saved: a resumed run warms up and captures again, with identical bits.
/// Errors  SettingsError on a device without graphs, for parameters on other devices and for
///         warm_up below 1. A recipe with host syncs, or with a policy that does not declare that
///         it can be captured, does not compile. If a capture fails at run time, the run continues
///         eagerly and the report's advice gives the reason.
/// Source  torch.cuda.graph, as whole-network capture of PyTorch's notes on CUDA graphs.
///
/// The first windows run eagerly on a side stream as a warm-up. Then the step is captured for their
/// shapes. A window of other shapes, or with fewer micro-batches, runs eagerly, and replay
/// continues with the next one; after `warm_up` consecutive windows of one other shape the step is
/// captured for that shape.
///
/// Options, in any order: WholeStep, and a CaptureBackend in place of CUDA's.
template <class... Options>
struct CudaGraph {
 private:
  using classes = list<detail::option::whole_step, detail::option::capture_backend>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: CudaGraph<...>: unknown option. Options: WholeStep, and a type that is a "
                "frugal::CaptureBackend in place of CUDA's.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: CudaGraph<...>: the same option twice. Write CudaGraph<WholeStep>.");
  using Backend = detail::option_of<detail::option::capture_backend, DefaultCapture, Options...>;

 public:
  /// The form in which a checkpoint names it, whatever the order of its options.
  using canonical = CudaGraph<WholeStep, Backend>;
  using kind = kinds::execution;
  using listens = list<on::module, on::fit_begin>;
  using provides = list<service::execution, service::capture>;
  using demands =
      list<detail::WaitsForNothing, detail::Capturable, detail::Replayable, detail::Placeable>;

  static constexpr About about{
      Term::hours_per_run,
      "one copy of each batch per step; activations and gradients stay in memory"};

  int warm_up = 3;        ///< eager windows before a capture
  int most_captures = 8;  ///< for other shapes; the last one is kept
  /// Generators that the module or the objective uses, besides the device's own.
  std::vector<at::Generator> generators{};
  Backend backend{};

  template <class Passes>
  using Executor = detail::CapturedExecutor<Passes>;

  template <class Context>
  class State;
};

template <class... Options>
template <class Context>
class CudaGraph<Options...>::State {
 public:
  // A capture belongs to the process, and loaded state is in other memory.
  using dispensable = void;
  template <class Archive>
  void persist(Archive&) {
    if (Archive::loading) loaded_ = true;
  }

  State(CudaGraph const& settings, RecipeFacts const& facts)
      : warm_up_(settings.warm_up),
        captures_left_(settings.most_captures),
        step_(static_cast<std::size_t>(facts.batches), settings.backend, settings.generators) {}

  // Before the module moves to the device.
  void on_module(ModuleSetup const& phase) { Backend::require(phase.settings().device); }

  void on_fit_begin(FitBegin& phase) {
    c10::Device const device = phase.settings().device;
    require_settings();
    for (at::Tensor const& each : phase.parameters().tensors) require_on(device, each);
    at::Tensor const& some = phase.parameters().tensors.front();
    rate_ = at::zeros({}, some.options().dtype(at::kDouble).requires_grad(false));
    step_.backend().begin(device);
  }

  // Called by phases, within a step.
  bool capturing() const { return step_.capturing(); }
  void defer(std::function<void()> f) { step_.defer(std::move(f)); }
  at::Tensor const& rate() const { return rate_; }
  void state_has_moved() { moved_ = true; }

  /// The executor calls this with a window's batches: whether to replay it. First captures the step
  /// if that is due; then `pass(batch, times)` is forward and backward of a batch that stands for
  /// that many of the window, and `update()` is everything after them.
  template <class Batch, class Source, class Pass, class Update>
  bool ready(RunState& run, std::vector<Batch> const& batches, Source& source, Pass&& pass,
             Update&& update) {
    static_assert(
        ShowsTensors<Batch>,
        "frugal: CudaGraph copies batches into tensors that stay in place, and the batch_traits of "
        "this batch type do not list its tensors. Write batch_traits<B>::each_tensor(batch, f).");
    at::NoGradGuard const no_gradients;
    warming_ = false;
    set_rate(run.rate.factor());
    bool const moved = std::exchange(moved_, false) && !step_.empty();
    if (std::exchange(loaded_, false) || moved) forget();
    if (given_up_) return false;
    if (!of_one_shape(batches)) {
      advise_once(
          run, advised_ragged_,
          "a window of fewer micro-batches, or of several shapes, ran eagerly: the graph is "
          "for " +
              std::to_string(step_.micro_batches()) + " of one shape");
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
        advise_once(run, advised_shape_,
                    "a window of batches " + detail::shapes_text(batches.front()) +
                        " ran eagerly: the graph is for " + captured_text_);
      }
    }
    if (captures_left_ <= 0) {
      if (step_.empty()) {
        advise_once(run, advised_spent_,
                    "the step was captured most_captures times, and runs eagerly from now on");
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

  /// Runs a window eagerly; `body` returns its weight.
  template <class Body>
  void eagerly(RunState& run, Body&& body) {
    if (!warming_) {
      body();
      return;
    }
    double weight = 0;
    step_.backend().on_side_stream([&] { weight = body(); });
    if (seen_ > 1 && weight != window_weight_) give_up_on_weights(run);
    window_weight_ = weight;
  }

  /// Replays a window. `count(batch, loss, weight)` is called for each micro-batch.
  template <class Batch, class Count>
  void replay(std::vector<Batch> const& batches, Count&& count) {
    step_.replay(batches, count);
  }
  /// Runs the host work that policies deferred until after a replay.
  void update_host() const { step_.update_host(); }

 private:
  template <class Batch>
  bool of_one_shape(std::vector<Batch> const& batches) {
    shapes_.read(batches.front());
    for (std::size_t i = 1; i < batches.size(); ++i) {
      other_.read(batches[i]);
      if (other_ != shapes_) return false;
    }
    return batches.size() == step_.micro_batches();
  }

  template <class Batch, class Source, class Pass, class Update>
  bool capture(RunState& run, Batch const& like, Source& source, Pass& pass, Update& update) {
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
      // Every replay would overwrite what was allocated within the capture.
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

  void advise_once(RunState& run, bool& advised, std::string const& what) {
    if (std::exchange(advised, true)) return;
    run.warn("CudaGraph: " + what);
  }

  void give_up(RunState& run, std::string const& reason) {
    forget();
    given_up_ = true;
    run.warn("CudaGraph: steps run eagerly, since the step cannot be captured: " + reason);
  }
  void give_up_on_weights(RunState& run) {
    give_up(run,
            "the objective weighs batches of one shape differently; return the same Loss::weight "
            "for them, or remove CudaGraph");
  }

  void require_settings() const {
    if (warm_up_ >= 1 && captures_left_ >= 1) return;
    throw SettingsError({.what = "warm_up is " + std::to_string(warm_up_) +
                                 ", and most_captures is " + std::to_string(captures_left_),
                         .where = "CudaGraph",
                         .why = "tensors that a step creates once must exist before the capture",
                         .fix = "Set 1 or more; 3 and 8 are the defaults."});
  }
  static void require_on(c10::Device device, at::Tensor const& parameter) {
    if (parameter.device().type() == device.type() &&
        (!device.has_index() || parameter.device() == device)) {
      return;
    }
    throw SettingsError(
        {.what = "a parameter is on " + parameter.device().str(),
         .where = "CudaGraph<WholeStep>",
         .why = "a graph belongs to one device, and Settings::device is " + device.str(),
         .fix = "Put the whole module on it, or remove CudaGraph<WholeStep>."});
  }

  int warm_up_;
  int captures_left_;
  detail::CapturedStep<Backend> step_;
  at::Tensor rate_;
  double factor_ = 0;

  detail::Shapes shapes_, other_;  // of the current window
  detail::Shapes captured_, coming_;
  std::string captured_text_;
  int seen_ = 0;              // consecutive windows of the shape to capture
  double window_weight_ = 0;  // of the last of these
  bool warming_ = false;
  bool moved_ = false;   // the optimizer has reallocated tensors since the last step
  bool loaded_ = false;  // likewise, and the allocations of a first step must be made again
  bool given_up_ = false;
  bool advised_ragged_ = false;
  bool advised_shape_ = false;
  bool advised_spent_ = false;
};

}  // namespace frugal
