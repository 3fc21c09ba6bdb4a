// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/staging.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/source/batch.hpp>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

// CudaGraph's demands on every policy of its recipe, user-defined policies included.

FRUGAL_DIAGNOSTIC(
    waits_in_graph,
    "frugal: CudaGraph<WholeStep> replays a step without the host, and a policy of this "
    "recipe waits for the device in every step. The compiler's note names the policy. "
    "Remove it (for example, use Optimize<AdamW>, which has a fused kernel, instead of "
    "Optimize<Any>), or remove CudaGraph<WholeStep>.");
FRUGAL_DIAGNOSTIC(
    not_capturable,
    "frugal: CudaGraph<WholeStep> captures the hooks within a step, and a policy of this "
    "recipe has such a hook without declaring it capturable. The compiler's note names "
    "the policy. Remove it or CudaGraph<WholeStep>, or write `using "
    "properties = frugal::list<frugal::property::capturable>;` in it if these hooks call tensor "
    "operators only.");

FRUGAL_DIAGNOSTIC(
    not_placeable,
    "frugal: CudaGraph<WholeStep> captures one micro-batch for all but the first of a window, and "
    "a "
    "policy of this recipe listens to around::micro_batch, which tells the first and last "
    "micro-batch. The compiler's note names the policy. Remove it or CudaGraph<WholeStep>.");

FRUGAL_DIAGNOSTIC(
    not_replayable,
    "frugal: CudaGraph<WholeStep> replays a step without the module's output, and a policy of this "
    "recipe (TrainMetrics) measures that of each training batch. Remove one of the two; Validate "
    "works with CudaGraph<WholeStep>.");

/// The hooks that are called during a capture.
inline constexpr unsigned hooks_in_step =
    hook_mask<list<around::forward, on::loss, on::backward, on::gradients, on::update>>;

struct WaitsForNothing {
  using sentence = waits_in_graph;
  template <class P>
  static constexpr bool met = about_of<P>().host_syncs_per_step == 0;
};
struct Capturable {
  using sentence = not_capturable;
  template <class P>
  static constexpr bool met = !WaitsForNothing::met<P> || has_property<property::capturable, P> ||
                              (hook_mask<typename P::listens> & hooks_in_step) == 0;
};

struct Replayable {
  using sentence = not_replayable;
  template <class P>
  static constexpr bool met = !contains<service::measure, typename provides_of<P>::type>;
};

struct Placeable {
  using sentence = not_placeable;
  template <class P>
  static constexpr bool met =
      (hook_mask<typename P::listens> & hook_mask<list<around::micro_batch>>) == 0;
};

/// The recordings of a step of so many micro-batches, and the tensors that they read and write.
///
/// The first micro-batch finds no gradients and allocates them, at fixed addresses; the others add
/// to them; the update follows the last. So there are three recordings, or a single one for a
/// single micro-batch.
template <class Backend>
class CapturedStep {
 public:
  CapturedStep(std::size_t micro_batches, Backend const& backend,
               std::vector<at::Generator> const& generators)
      : micro_batches_(micro_batches), backend_(backend), generators_(generators) {}

  std::size_t micro_batches() const { return micro_batches_; }

  Backend& backend() { return backend_; }
  bool empty() const { return recordings_.empty(); }
  bool capturing() const { return capturing_; }
  /// Registers `f` to be called after each replay.
  void defer(std::function<void()> f) { deferred_.push_back(std::move(f)); }

  /// The total weight of a window's micro-batches.
  double window_weight() const {
    double sum = 0;
    for (std::size_t i = 0; i < micro_batches_; ++i) sum += weight_;
    return sum;
  }

  /// Captures the step for batches of this one's shapes, without executing it. Afterwards, also if
  /// it throws, the parameters have no gradients.
  template <class Batch, class Pass, class Update>
  void capture(RunState& run, Batch batch, Pass& pass, Update& update) {
    forget();
    Capturing const scope(*this, run);
    batch_to(batch, run.settings.device);
    batch_tensors(batch, [&](at::Tensor& tensor) {
      if (tensor.defined()) tensor = tensor.clone();
      inputs_.push_back(tensor);
    });
    auto const micro_batch = [&](std::size_t times) {
      Loss const loss = pass(std::as_const(batch), static_cast<int>(times));
      losses_.push_back(loss.value.detach());
      scalars_.push_back(loss.scalars);
      weight_ = *loss.weight;
    };
    if (micro_batches_ == 1) {
      record([&] {
        micro_batch(1);
        update();
      });
    } else {
      record([&] { micro_batch(1); });
      for (at::Tensor const& each : run.parameters.tensors) gradients_.push_back(each.grad());
      record([&] { micro_batch(micro_batches_ - 1); });
      record([&] { update(); });
    }
  }

  /// Executes the step with N batches. `count(batch, loss, weight, scalars)` is called for each;
  /// the loss and the scalars are copies.
  template <class Batch, class Count>
  void replay(std::vector<Batch> const& batches, Count&& count) {
    at::NoGradGuard const no_gradients;
    for (std::size_t i = 0; i < micro_batches_; ++i) {
      copy_in(batches[i]);
      std::size_t const which = i == 0 ? 0 : 1;
      recordings_[which].replay();
      count(batches[i], losses_[which].clone(), weight_, scalars_[which].clone());
    }
    if (micro_batches_ > 1) recordings_.back().replay();
  }
  void update_host() const {
    for (auto const& f : deferred_) f();
  }

  void forget() {
    recordings_.clear();
    deferred_.clear();
    inputs_.clear();
    losses_.clear();
    scalars_.clear();
    gradients_.clear();
    backend_.forget();
  }

 private:
  /// For its lifetime the parameters' gradients are those of the recordings; afterwards there are
  /// none.
  class Capturing {
   public:
    Capturing(CapturedStep& step, RunState& run) : step_(step), run_(run) {
      step_.capturing_ = true;
      reset();
    }
    Capturing(Capturing const&) = delete;
    Capturing& operator=(Capturing const&) = delete;
    ~Capturing() {
      step_.capturing_ = false;
      reset();
    }

   private:
    void reset() {
      // Clear the cache: cached casts of weights would be replayed unchanged, and those cached
      // within the capture have no value yet.
      at::autocast::clear_cache();
      run_.parameters.reset_gradients();
      run_.window.gradients().clear();
    }
    CapturedStep& step_;
    RunState& run_;
  };

  /// Copies a host batch through page-locked memory: from other memory the host would wait for the
  /// previous replay, which the copy follows.
  template <class Batch>
  void copy_in(Batch const& batch) {
    std::optional<c10::Device> through;
    std::size_t at = 0;
    batch_tensors(batch, [&](at::Tensor const& tensor) {
      at::Tensor const& input = inputs_[at++];
      if (!tensor.defined()) return;
      if (!tensor.is_cpu() || input.is_cpu()) {
        input.copy_(tensor, /*non_blocking=*/true);
        return;
      }
      if (!staging_) staging_.emplace(input.device().type(), batches_ahead);
      if (!through) staging_->open();
      through = input.device();
      input.copy_(staging_->locked(tensor), /*non_blocking=*/true);
    });
    if (!through) return;
    staging_->close(c10::impl::VirtualGuardImpl(through->type()).getStream(*through));
  }

  void record(std::function<void()> const& body) {
    at::AutoGradMode const gradients(true);
    recordings_.push_back(backend_.capture(generators_, body));
  }

  static constexpr std::size_t batches_ahead = 4;  ///< that the host may be ahead of the device

  std::size_t micro_batches_;
  Backend backend_;
  std::vector<at::Generator> generators_;
  std::optional<Staging> staging_;
  bool capturing_ = false;
  double weight_ = 0;  // of each micro-batch
  std::vector<at::Tensor> inputs_;
  std::vector<at::Tensor> losses_;
  std::vector<Scalars> scalars_;
  std::vector<at::Tensor> gradients_;
  std::vector<std::function<void()>> deferred_;
  std::vector<typename Backend::Recording> recordings_;
};

/// The types and shapes of a batch's tensors, for which a recording is valid.
class Shapes {
 public:
  template <class B>
  void read(B const& batch) {
    numbers_.clear();
    batch_tensors(batch, [&](at::Tensor const& tensor) {
      if (!tensor.defined()) {
        numbers_.push_back(-1);
        return;
      }
      numbers_.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
      numbers_.push_back(tensor.dim());
      for (std::int64_t const size : tensor.sizes()) numbers_.push_back(size);
    });
  }
  void clear() { numbers_.clear(); }

  friend bool operator==(Shapes const&, Shapes const&) = default;

 private:
  std::vector<std::int64_t> numbers_;
};

/// "[32, 784] Float, [32] Long", for error messages.
template <class B>
std::string shapes_text(B const& batch) {
  std::string text;
  batch_tensors(batch, [&](at::Tensor const& tensor) {
    text += (text.empty() ? "" : ", ") + shape_text(tensor);
  });
  return text;
}

}  // namespace frugal::detail
