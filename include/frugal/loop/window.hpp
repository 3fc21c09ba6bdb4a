// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <string>
#include <vector>

#include <frugal/data/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/run/objective.hpp>

namespace frugal {

/// The micro-batches between two optimizer steps, and their weights.
///
/// One big batch of weight W = w_1 + ... + w_n has the gradient  sum_i (w_i / W) g_i. W is known
/// only when the window is complete, so each backward pass starts from w_i / (N w_1), which is 1/N
/// while all weights are equal, and settle() multiplies by N w_1 / W if that is not 1: for a ragged
/// last window, or unequal weights. A full window of equal weights costs no operator.
///
/// Window<0> gets its N with each window.
///
/// A window that several processes share starts from w_i itself, and settle() divides by the W of
/// all processes, so that gradients can be summed over processes first, whatever their weights.
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

  /// The gradient that a micro-batch's backward pass starts from. Throws SettingsError for a
  /// negative or non-finite weight.
  at::Tensor seed(Loss const& loss) {
    double const weight = *loss.weight;
    if (!(weight >= 0) || weight > largest_weight) [[unlikely]]
      refuse(weight);
    if constexpr (Shared) {
      return constant(weight, loss.value);
    } else if constexpr (N == 1) {
      return constant(1.0, loss.value);
    } else {
      if (unit_ == 0) unit_ = static_cast<double>(count_) * weight;
      // The whole window: the seed is one, as in Window<1>, whatever the weight.
      if (N == 0 && count_ == 1) return constant(1.0, loss.value);
      return constant(unit_ == 0 ? 0.0 : weight / unit_, loss.value);
    }
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
    ++micro_batches_;
    samples_ += static_cast<std::uint64_t>(batch_samples(batch));
    tokens_ += static_cast<std::uint64_t>(batch_tokens(batch));
    weight_ += weight;
  }

  /// Scales the sum of the gradients to that of the weighted mean.
  void settle(std::vector<at::Tensor> const& gradients) const
    requires(!Shared)
  {
    if constexpr (N != 1) scale(gradients, unit_, weight_);
  }
  /// Settles one process's share of a window with total weight `all`.
  void settle(std::vector<at::Tensor> const& gradients, double all) const
    requires Shared
  {
    scale(gradients, 1.0, all);
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
    weight_ = unit_ = 0;
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
        {.what = "a loss has the weight " + std::to_string(weight),
         .where = "Loss::weight",
         .why = "a weight is a number of samples or tokens",
         .fix = "Return the number of samples or tokens that the loss averages over, 0 or more."});
  }

  std::int64_t count_ = N;
  std::uint64_t micro_batches_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t tokens_ = 0;
  double weight_ = 0;
  double unit_ = 0;  // N times the first non-zero weight
  at::Tensor cached_;
  double cached_value_ = 0;
};

}  // namespace frugal
