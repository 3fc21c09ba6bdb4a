// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include <frugal/core/libtorch/acting.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/model/quantise/quantised_weight.hpp>

namespace frugal::detail {

/// Rounds a layer's input and weight as INT8 would, with gradients that pass through rounding
/// (straight-through estimator). A child of the layer, so that ranges move and save with it.
class FakeQuantised : public torch::nn::Module, public KeepsTypes {
 public:
  explicit FakeQuantised(char const* name) : torch::nn::Module(name) {}
  virtual at::Tensor input(at::Tensor const& input) = 0;
  virtual at::Tensor weight(at::Tensor const& weight) = 0;

  /// The integers that the converted layer has, with their scales, and its grid of inputs. False
  /// before the first training step has seen an input.
  virtual bool ranged() const = 0;
  virtual Quantised integers(at::Tensor const& weight_N) const = 0;
  virtual InputGrid grid() const = 0;

  std::shared_ptr<LayerHook> hook{};  ///< that uses this

 protected:
  static constexpr std::int64_t low = 0, high = 255;  ///< of inputs
  static constexpr std::int64_t weight_low = -127, weight_high = 127;
};

/// Inputs between moving averages of their least and largest numbers, weights by their largest
/// magnitude of the moment.
class MovingRanges final : public FakeQuantised {
 public:
  explicit MovingRanges(double averaging);

  at::Tensor input(at::Tensor const& input) override {
    at::Tensor const yes = at::ones({1}, zero_point_.options().dtype(at::kLong));
    bool const follows = is_training() && !recomputing;
    at::Tensor const observes = follows ? yes : at::zeros_like(yes);
    // Before the first step there is no range.
    at::Tensor const rounds = is_training() || ranged() ? yes : at::zeros_like(yes);
    return at::fused_moving_avg_obs_fake_quant(input, observes, rounds, least_, largest_, scale_,
                                               zero_point_, averaging_, low, high, /*ch_axis=*/0,
                                               /*per_row_fake_quant=*/false,
                                               /*symmetric_quant=*/false);
  }

  at::Tensor weight(at::Tensor const& weight) override {
    at::Tensor scales;
    {
      at::NoGradGuard const no_gradients;
      // Rows of zeros have a scale of 0, by which nothing can be divided.
      scales = weight.detach().flatten(1).abs().amax(1).div_(127).clamp_min_(1e-12);
    }
    return at::fake_quantize_per_channel_affine(weight, scales, at::zeros_like(scales, at::kInt), 0,
                                                weight_low, weight_high);
  }

  bool ranged() const override {
    return std::isfinite(least_.item<double>()) && std::isfinite(largest_.item<double>());
  }
  Quantised integers(at::Tensor const& weight_N) const override {
    return Int8Format::rows(weight_N.detach().contiguous().flatten(1));
  }
  InputGrid grid() const override {
    return {scale_.item<double>(), zero_point_.item<std::int64_t>()};
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  double averaging_;
  at::Tensor least_, largest_, scale_, zero_point_;
};

/// Scales that the optimizer trains (LSQ): of each output of the weight, and of the input.
class LearnedRanges final : public FakeQuantised {
 public:
  explicit LearnedRanges(at::Tensor const& weight);

  at::Tensor input(at::Tensor const& input) override {
    if (!ranged() && !(is_training() && begin(input))) return input;
    keep_positive(scale_);
    return at::_fake_quantize_learnable_per_tensor_affine(input, scale_, zero_point_, low, high,
                                                          step(input.numel(), high));
  }

  at::Tensor weight(at::Tensor const& weight) override {
    keep_positive(weight_scale_);
    return at::_fake_quantize_learnable_per_channel_affine(
        weight, weight_scale_, at::zeros_like(weight_scale_).detach(), 0, weight_low, weight_high,
        step(weight.numel() / weight.size(0), weight_high));
  }

  bool ranged() const override { return begun_.item<bool>(); }
  Quantised integers(at::Tensor const& weight_N) const override {
    at::NoGradGuard const no_gradients;
    at::Tensor const rows = weight_N.detach().flatten(1);
    at::Tensor const inverse = weight_scale_.reciprocal().unsqueeze(1);
    return {rows.mul(inverse).round_().clamp_(weight_low, weight_high).to(at::kChar),
            weight_scale_.detach().clone()};
  }
  InputGrid grid() const override {
    double const zero = std::nearbyint(zero_point_.item<double>());
    return {scale_.item<double>(),
            static_cast<std::int64_t>(std::clamp(zero, double{low}, double{high}))};
  }

 private:
  static constexpr double smallest = 1e-9;

  /// The weight of the gradients of scales: LSQ, section 2.2.
  static double step(std::int64_t count, std::int64_t levels) {
    return 1 / std::sqrt(static_cast<double>(count) * static_cast<double>(levels));
  }
  // Both write before anything reads, and a second pass writes the same: Recompute, which refuses
  // parameters that change between its passes, need not see it (variable_data).
  static void keep_positive(at::Tensor const& scale) {
    at::NoGradGuard const no_gradients;
    scale.variable_data().clamp_min_(smallest);
  }
  /// False for an input that has no range: the window is skipped, and what it began would stay.
  bool begin(at::Tensor const& input);

  at::Tensor weight_scale_, scale_, zero_point_, begun_;
};

/// Computes a layer with rounded input and weight.
class FakeLayer final : public LayerHook {
 public:
  /// Its owner, which has this hook. The weight may outlive it, and then has no ranges any more.
  explicit FakeLayer(std::weak_ptr<FakeQuantised> fake) : fake_(std::move(fake)) {}

  Place place() const override { return Place::compute; }

  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    std::shared_ptr<FakeQuantised> const fake = fake_.lock();
    if (!fake) return rest(call);
    LayerCall rounded = call;
    rounded.input = fake->input(call.input.to(at::kFloat));
    rounded.weight = fake->weight(call.weight);
    return rest(rounded);
  }

 private:
  std::weak_ptr<FakeQuantised> fake_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/quantise/fake_layer.ipp>
#endif
