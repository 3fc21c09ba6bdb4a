// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// The micro-batches between two optimizer steps, and their weights.
///
/// One big batch of weight W = w_1 + ... + w_n has the gradient  sum_i (w_i / W) g_i. W is known
/// only when the window is complete, so each backward pass starts from w_i / (N u), and normalise()
/// multiplies by N u / W if that is not 1. The unit u is w_1: then a full window of equal weights
/// starts from 1/N and costs no operator.
///
/// No pass starts from more than 1/N, so that FP16 overflows in no order of the weights: before a
/// pass that is heavier than u, u is doubled until it is not, and the gradients so far are halved
/// as often (shrink()). Powers of two leave their digits as they are.
///
/// Window<0> gets its N with each window.
///
/// A window that several processes share has N = 1, and for u the smallest power of two, at least
/// 1, that its weights need. complete() multiplies by u, so that gradients can be summed over
/// processes whatever their weights, and normalise() divides by the W of all processes.
template <int N, bool Shared = false>
class Window {
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
    if (!(weight >= 0) || weight > largest_weight) [[unlikely]]
      refuse(weight);
    if constexpr (N == 1 && !Shared) return 1;
    double const full = Shared ? weight : static_cast<double>(count_) * weight;
    if (full <= unit_) [[likely]]
      return 1;
    if (unit_ == 0) {
      unit_ = full;
      return 1;
    }
    double const before = unit_;
    while (unit_ < full) unit_ *= 2;
    return before / unit_;
  }

  /// The gradient that a micro-batch's backward pass starts from, after shrink(): at most 1.
  at::Tensor seed(Loss const& loss) {
    // The whole window: the seed is one, whatever the weight.
    if (!Shared && (N == 1 || (N == 0 && count_ == 1))) return constant(1.0, loss.value);
    return constant(unit_ == 0 ? 0.0 : *loss.weight / unit_, loss.value);
  }

  /// For its lifetime seeds are refilled, so that a graph that captures one also captures the fill.
  /// Afterwards they are refilled too, because a failed capture has filled nothing.
  class [[nodiscard]] OwnSeed {
   public:
    explicit OwnSeed(Window& window) : window_(window) { window_.cached_ = at::Tensor(); }
    OwnSeed(OwnSeed const&) = delete;
    OwnSeed& operator=(OwnSeed const&) = delete;
    ~OwnSeed() { window_.cached_ = at::Tensor(); }

   private:
    Window& window_;
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

  /// Scales the sum of the gradients to that of the weighted mean.
  void normalise(std::vector<at::Tensor> const& gradients) const
    requires(!Shared)
  {
    if constexpr (N != 1) scale(gradients, unit_, weight_);
  }
  /// Of a process's share, after its last backward pass: scales the gradients to those of losses
  /// times their weights, which add up over processes.
  void complete(std::vector<at::Tensor> const& gradients)
    requires Shared
  {
    scale(gradients, unit_, 1.0);
    unit_ = 1;
  }
  /// Likewise for a caller that multiplies them.
  double take_unit()
    requires Shared
  {
    return std::exchange(unit_, 1.0);
  }
  /// Divides the gradients by the weight of all processes.
  void normalise(std::vector<at::Tensor> const& gradients, double all) const
    requires Shared
  {
    scale(gradients, 1.0, all);
  }

  /// What complete() multiplies the gradients by.
  double unit() const
    requires Shared
  {
    return unit_;
  }

  bool empty() const { return micro_batches_ == 0; }
  std::uint64_t micro_batches() const { return micro_batches_; }
  std::uint64_t samples() const { return samples_; }
  std::uint64_t tokens() const { return tokens_; }
  double weight() const { return weight_; }

 private:
  static constexpr double largest_weight = 1e300;

  static void scale(std::vector<at::Tensor> const& gradients, double unit, double all) {
    if (all == unit || all == 0 || gradients.empty()) return;
    at::NoGradGuard const no_gradients;
    at::_foreach_mul_(gradients, unit / all);
  }

  void reset() {
    micro_batches_ = samples_ = tokens_ = 0;
    weight_ = 0;
    unit_ = Shared ? 1 : 0;
  }

  // Filled once and reused: the seed of a full window never changes.
  at::Tensor const& constant(double value, at::Tensor const& like) {
    if (value != cached_value_ || !cached_.defined() ||
        cached_.scalar_type() != like.scalar_type() || cached_.device() != like.device()) {
      cached_ = at::full({}, value, like.options().requires_grad(false));
      cached_value_ = value;
    }
    return cached_;
  }

  [[noreturn]] static void refuse(double weight) {
    throw SettingsError(
        {.what = "a loss has the weight " + detail::general(weight, 6),
         .where = "Loss::weight",
         .why = "a weight is a number of samples or tokens",
         .fix = "Return the number of samples or tokens that the loss averages over, 0 or more."});
  }

  std::int64_t count_ = N;
  std::uint64_t micro_batches_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t tokens_ = 0;
  double weight_ = 0;
  double unit_ = Shared ? 1 : 0;  // N u; 0 before the first weight
  at::Tensor cached_;
  double cached_value_ = 0;
};

namespace detail {

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
}  // namespace frugal
