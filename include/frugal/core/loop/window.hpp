// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <frugal/core/measure/measure.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/source/batch.hpp>

namespace frugal {

/// What the micro-batches of a window add up to, and the seeds of their backward passes.
class WindowCounts {
 public:
  /// For its lifetime seeds are refilled, so that a graph that captures one also captures the fill.
  /// Afterwards they are refilled too, because a failed capture has filled nothing.
  class [[nodiscard]] OwnSeed {
   public:
    explicit OwnSeed(WindowCounts& window) : window_(window) { window_.cached_ = at::Tensor(); }
    OwnSeed(OwnSeed const&) = delete;
    OwnSeed& operator=(OwnSeed const&) = delete;
    ~OwnSeed() { window_.cached_ = at::Tensor(); }

   private:
    WindowCounts& window_;
  };

  template <class B>
  void add(B const& batch, double weight) {
    add(weight, static_cast<std::uint64_t>(batch_samples(batch)),
        static_cast<std::uint64_t>(batch_tokens(batch)));
  }
  /// A micro-batch, of this process or of another one.
  void add(double weight, std::uint64_t samples, std::uint64_t tokens) {
    ++micro_batches_;
    samples_ += samples;
    tokens_ += tokens;
    weight_ += weight;
  }

  bool empty() const { return micro_batches_ == 0; }
  std::uint64_t micro_batches() const { return micro_batches_; }
  std::uint64_t samples() const { return samples_; }
  std::uint64_t tokens() const { return tokens_; }
  double weight() const { return weight_; }
  /// The value of the seed that was asked for last.
  double seed_value() const { return cached_value_; }

 protected:
  void reset() {
    micro_batches_ = samples_ = tokens_ = 0;
    weight_ = 0;
  }
  /// Throws SettingsError for a negative or non-finite weight.
  static void require_valid(double weight) {
    if (!(weight >= 0) || weight > largest_weight) [[unlikely]]
      refuse(weight);
  }
  /// Multiplies gradients by `unit / all`, unless that is 1 or nothing counts.
  static void scale(std::vector<at::Tensor> const& gradients, double unit, double all);
  /// The smallest power of two times `unit` that is not below `full`: the next unit of the seeds.
  static double raised(double unit, double full) {
    while (unit < full) unit *= 2;
    return unit;
  }
  // Filled once and reused: the seed of a full window never changes.
  at::Tensor const& constant(double value, at::Tensor const& like) {
    if (value != cached_value_ || !cached_.defined() ||
        cached_.scalar_type() != like.scalar_type() || cached_.device() != like.device()) {
      fill(value, like);
    }
    return cached_;
  }

 private:
  static constexpr double largest_weight = 1e300;
  [[noreturn]] static void refuse(double weight);
  void fill(double value, at::Tensor const& like);

  std::uint64_t micro_batches_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t tokens_ = 0;
  double weight_ = 0;
  at::Tensor cached_;
  double cached_value_ = 0;
};

/// The micro-batches between two optimizer steps, and their weights.
///
/// One big batch of weight W = w_1 + ... + w_n has the gradient  sum_i (w_i / W) g_i. W is known
/// only when the window is complete, so each backward pass starts from w_i / (N u), and normalize()
/// multiplies by N u / W if that is not 1. The unit u is w_1: then a full window of equal weights
/// starts from 1/N and costs no operator.
///
/// No pass starts from more than 1/N, so that FP16 overflows in no order of the weights: before a
/// pass that is heavier than u, u is doubled until it is not, and the gradients so far are halved
/// as often (shrink()). Powers of two leave their digits as they are.
///
/// Window<0> gets its N with each window.
template <int N>
class Window : public WindowCounts {
 public:
  void open()
    requires(N > 0)
  {
    reset();
  }
  void open(std::int64_t micro_batches)
    requires(N == 0)
  {
    reset();
    count_ = micro_batches;
  }

  /// What to multiply the window's gradients by before the backward pass of a loss of this weight:
  /// 1 unless it is heavier than those before. Throws SettingsError for a negative or non-finite
  /// weight.
  double shrink(double weight) {
    require_valid(weight);
    if constexpr (N == 1) return 1;
    double const full = static_cast<double>(count_) * weight;
    if (full <= unit_) [[likely]]
      return 1;
    double const before = unit_;
    unit_ = before == 0 ? full : raised(before, full);
    return before == 0 ? 1 : before / unit_;
  }

  /// The gradient that a micro-batch's backward pass starts from, after shrink(): at most 1.
  at::Tensor seed(Loss const& loss) {
    // The whole window: the seed is one, whatever the weight.
    if (N == 1 || (N == 0 && count_ == 1)) return constant(1.0, loss.value);
    return constant(unit_ == 0 ? 0.0 : *loss.weight / unit_, loss.value);
  }

  /// Scales the sum of the gradients to that of the weighted mean.
  void normalize(std::vector<at::Tensor> const& gradients) const {
    if constexpr (N != 1) scale(gradients, unit_, weight());
  }

 private:
  void reset() {
    WindowCounts::reset();
    unit_ = 0;
  }

  std::int64_t count_ = N;
  double unit_ = 0;  // N u; 0 before the first weight
};

namespace detail {

/// Adds a micro-batch's loss and scalars to those of the epoch.
inline void add_loss(RunState& run, Loss const& loss) {
  run.losses.add(loss.value, *loss.weight, run.counters());
  if (!loss.scalars.empty()) [[unlikely]]
    run.losses.add(loss.scalars, run.losses.leaves(loss.value) ? 0 : *loss.weight);
}

/// A window in a run of one process. Passes calls the members in their order here; a strategy of several
/// processes has a window with the same members.
template <class Context>
class LocalWindow : public Window<traits_of<Context>::splits ? 0 : traits_of<Context>::batches> {
 public:
  explicit LocalWindow(Run<Context>& run) : run_(run) {}

  /// Whether a policy's verdict on the next window is that of the run.
  static bool agreed(RunState&, bool verdict) { return verdict; }
  /// Whether the source had no batch for the window.
  template <class Source>
  bool is_empty(Source const&) const {
    return this->empty();
  }
  /// A micro-batch's loss, before its backward pass.
  void read(Loss const& loss) { add_loss(run_, loss); }
  /// Calls the policies that may refuse the loss.
  template <class Emit>
  void judge(Emit&& emit) {
    emit();
  }
  /// The loss counts nothing, and has no backward pass.
  void pass_over() {}
  /// The micro-batch is trained.
  template <class Batch>
  void trained(Batch const&, Loss&) {
    run_.progress.count_micro_batch();
  }
  /// Likewise, before the around-hooks of the micro-batch end.
  void passed(bool /*is_last*/) {}
  /// The last micro-batch of the window is trained.
  template <class Source>
  void end(Source const&) {
    require_weight(this->weight(), run_.counters(), run_.counters().position);
  }
  /// The gradients become those of the window's weighted mean. `is_trial`: of a trial step.
  void finish_gradients(std::vector<at::Tensor> const& gradients, bool /*is_trial*/) {
    this->normalize(gradients);
  }

 private:
  Run<Context>& run_;
};

/// Keeps the batches and the mean loss of a window, for optimizers that evaluate it several times.
/// Empty, with empty functions, for all other optimizers.
template <class Batch, bool Kept>
class KeptWindow {
 public:
  void open() { batches_.clear(), reopen(); }
  /// Begins the same batches again.
  void reopen() { sum_ = at::Tensor(); }

  void keep(Batch&& batch) { batches_.push_back(std::move(batch)); }
  void add(Loss const& loss) {
    at::Tensor const value = loss.value.detach();
    // A value of weight 0 is not read: it may be NaN.
    at::Tensor const part = *loss.weight == 0 ? at::zeros_like(value) : value * *loss.weight;
    sum_ = sum_.defined() ? sum_ + part : part;
  }

  std::vector<Batch> const& batches() const { return batches_; }
  at::Tensor mean(double weight) const { return sum_ / weight; }

 private:
  std::vector<Batch> batches_;
  at::Tensor sum_;
};

template <class Batch>
class KeptWindow<Batch, false> {
 public:
  void open() {}
  void reopen() {}
  void keep(Batch&&) {}
  void add(Loss const&) {}
};

}  // namespace detail

/// The strategy of a run of one process. A policy with which several processes train names another one
/// as its `strategy`, with the same members (cluster/).
struct OneProcess {
  /// What the losses, weights and gradients of micro-batches become.
  template <class Context>
  using Window = detail::LocalWindow<Context>;
  /// What becomes of a metric's error in a validation.
  static constexpr detail::MetricErrors metric_errors = detail::MetricErrors::noted;

  /// Measures a source into a measurement and the means of scalars.
  template <class Metrics, class Valid, class Measurement>
  static void measure(Valid& source, RunState& run, detail::ForwardOf<Valid> forward,
                      detail::Measuring const& how, Measurement& into, ScalarSpan& means) {
    detail::measure_all(source, run, forward, how, into, means);
  }
  /// Calls `fit` with the training source as this process reads it. `batches`: of a window.
  template <class Trainer, class Source, class Fit>
  static auto read(Trainer const&, Source& source, int /*batches*/, Fit&& fit) {
    return fit(source);
  }
  /// Asserts that the training and validation sources can be read so.
  template <class... Sources>
  static constexpr bool require_sources() {
    return true;
  }
  /// What phases ask of the other processes; none here.
  template <class Engine>
  static std::unique_ptr<ProcessesInterface> processes(Engine&) {
    return nullptr;
  }
};

namespace detail {

/// The strategy of a recipe.
template <class Policies>
using strategy_of = strategy_or<Policies, OneProcess>;

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/loop/window.ipp>
#endif
