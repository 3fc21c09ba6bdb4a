// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/data/batch.hpp>
#include <frugal/libtorch/staging.hpp>
#include <frugal/run/objective.hpp>
#include <frugal/run/run.hpp>

namespace frugal::detail {

/// The recordings of a step of N micro-batches, and the tensors that they read and leave.
///
/// The first micro-batch finds no gradients and leaves its own, where they then stay; the others
/// add theirs to these; the update has to come after the last. So there are three recordings, and
/// one where a single micro-batch has nothing between first and last.
template <class Backend, std::size_t N>
class CapturedStep {
 public:
  CapturedStep(Backend const& backend, std::vector<at::Generator> const& generators)
      : backend_(backend), generators_(generators) {}

  Backend& backend() { return backend_; }
  bool empty() const { return recordings_.empty(); }
  bool capturing() const { return capturing_; }
  /// `f` is called after each replay.
  void defer(std::function<void()> f) { deferred_.push_back(std::move(f)); }

  /// What the weights of a window's micro-batches add up to.
  double window_weight() const {
    double sum = 0;
    for (std::size_t i = 0; i < N; ++i) sum += weight_;
    return sum;
  }

  /// Captures the step for batches of this one's shapes. Nothing of it is done, and the parameters
  /// have no gradients after it, also when it throws.
  template <class Context, class Batch, class Pass, class Update>
  void capture(Run<Context>& run, Batch batch, Pass& pass, Update& update) {
    forget();
    Capturing<Context> const scope(*this, run);
    batch_traits<Batch>::to(batch, run.settings.device);
    batch_traits<Batch>::each_tensor(batch, [&](at::Tensor& tensor) {
      if (tensor.defined()) tensor = tensor.clone();
      inputs_.push_back(tensor);
    });
    auto const micro_batch = [&](std::size_t times) {
      Loss const loss = pass(std::as_const(batch), static_cast<int>(times));
      losses_.push_back(loss.value.detach());
      scalars_.push_back(loss.scalars);
      weight_ = *loss.weight;
    };
    if constexpr (N == 1) {
      record([&] {
        micro_batch(1);
        update();
      });
    } else {
      record([&] { micro_batch(1); });
      for (at::Tensor const& each : run.parameters.tensors) gradients_.push_back(each.grad());
      record([&] { micro_batch(N - 1); });
      record([&] { update(); });
    }
  }

  /// Does the step with the tensors of N batches. `count(batch, loss, weight, scalars)` hears of
  /// each; the loss and the scalars are their own copies.
  template <class Batch, class Count>
  void replay(std::vector<Batch> const& batches, Count&& count) {
    at::NoGradGuard const no_gradients;
    for (std::size_t i = 0; i < N; ++i) {
      copy_in(batches[i]);
      std::size_t const which = i == 0 ? 0 : 1;
      recordings_[which].replay();
      count(batches[i], losses_[which].clone(), weight_, scalars_[which].clone());
    }
    if constexpr (N > 1) recordings_.back().replay();
  }
  void tell_host() const {
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
  /// The parameters' gradients are the recordings' for its span, and nobody's after it.
  template <class Context>
  class Capturing {
   public:
    Capturing(CapturedStep& step, Run<Context>& run) : step_(step), run_(run) {
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
      // Casts of weights that were cached before would be replayed as they were, and those that
      // are cached now have no value yet.
      at::autocast::clear_cache();
      run_.parameters.reset_gradients();
      run_.gradients.clear();
    }
    CapturedStep& step_;
    Run<Context>& run_;
  };

  /// A batch of the host goes through page-locked memory: out of other memory the host would wait
  /// for the replay before, behind which the copy stands.
  template <class Batch>
  void copy_in(Batch const& batch) {
    std::optional<c10::Device> through;
    std::size_t at = 0;
    batch_traits<Batch>::each_tensor(batch, [&](at::Tensor const& tensor) {
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

}  // namespace frugal::detail
