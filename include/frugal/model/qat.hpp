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
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/acting.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/model/fold_batch_norm.hpp>
#include <frugal/model/quantize.hpp>
#include <frugal/model/quantize/quantized_weight.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::kinds {

struct qat : optional_kind {
  static constexpr std::string_view name = "Qat";
  static constexpr std::string_view page = "model/quantize.md";
  static constexpr Stage stage = Stage::transform;
};

}  // namespace frugal::kinds

namespace frugal::detail {

/// Rounds a layer's input and weight as INT8 would, with gradients that pass through rounding
/// (straight-through estimator). A child of the layer, so that ranges move and save with it.
class FakeQuantized : public torch::nn::Module, public KeepsTypes {
 public:
  explicit FakeQuantized(char const* name) : torch::nn::Module(name) {}
  virtual at::Tensor input(at::Tensor const& input) = 0;
  virtual at::Tensor weight(at::Tensor const& weight) = 0;

  /// The integers that the converted layer has, with their scales, and its grid of inputs. False
  /// before the first training step has seen an input.
  virtual bool ranged() const = 0;
  virtual Quantized integers(at::Tensor const& weight_N) const = 0;
  virtual InputGrid grid() const = 0;

  std::shared_ptr<LayerHook> hook{};  ///< that uses this

 protected:
  static constexpr std::int64_t low = 0, high = 255;  ///< of inputs
  static constexpr std::int64_t weight_low = -127, weight_high = 127;
};

/// Inputs between moving averages of their least and largest numbers, weights by their largest
/// magnitude of the moment.
class MovingRanges final : public FakeQuantized {
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
  Quantized integers(at::Tensor const& weight_N) const override {
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
class LearnedRanges final : public FakeQuantized {
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
  Quantized integers(at::Tensor const& weight_N) const override {
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
  explicit FakeLayer(std::weak_ptr<FakeQuantized> fake) : fake_(std::move(fake)) {}

  Place place() const override { return Place::compute; }

  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    std::shared_ptr<FakeQuantized> const fake = fake_.lock();
    if (!fake) return rest(call);
    LayerCall rounded = call;
    rounded.input = fake->input(call.input.to(at::kFloat));
    rounded.weight = fake->weight(call.weight);
    return rest(rounded);
  }

 private:
  std::weak_ptr<FakeQuantized> fake_;
};

}  // namespace frugal::detail

namespace frugal {

// How Qat finds the ranges of inputs and weights.
struct Moving {};   ///< moving averages of least and largest numbers
struct Learned {};  ///< scales are parameters (LSQ)

namespace detail {

void require_trainable(WeightedLayer const& layer);

/// The name of a quantized weight of a module; empty without.
std::string quantized_weight_in(torch::nn::Module& root);

void require_not_quantized(torch::nn::Module& root);

/// Gives each layer that lacks one its fake quantization.
template <class Make>
void add_fake_layers(torch::nn::Module& root, QuantizeOptions const& options, Make const& make) {
  std::vector<WeightedLayer> layers = layers_for<INT8>(root, options);
  std::erase_if(layers, [](WeightedLayer const& each) {
    return each.module->named_children().contains(fake_child);
  });
  for (WeightedLayer const& layer : layers) require_trainable(layer);
  for (WeightedLayer const& layer : layers) {
    std::shared_ptr<FakeQuantized> const fake = make(layer.weight);
    fake->to(layer.weight.device());
    fake->train(layer.module->is_training());
    fake->hook = std::make_shared<FakeLayer>(fake);
    layer.module->register_module(fake_child, fake);
    intercept(layer.weight, fake->hook);
  }
}

/// Puts the quantized weight of each layer in place of its fake quantization.
QuantizedModule convert_layers(torch::nn::Module& root);

}  // namespace detail

template <class Format = INT8, class Ranges = Moving>
struct Qat {
  static_assert(
      detail::never<Format>,
      "frugal: Qat<...>: unknown option. Options: Qat<INT8>, Qat<INT8, Moving>, Qat<INT8, "
      "Learned>.");
};

/// Quantization-aware training: forward passes round inputs and weights of linear and convolutional
/// layers as INT8 would, so that training adapts to it. convert() makes the quantized module.
///
/// Lever   dollars of inference: INT8 at the accuracy of FP32, where quantize() alone loses some.
/// Cost    two operators per layer and forward pass, and their backward passes. No host sync with
///         Moving.
/// State   none: the ranges are buffers, or parameters, of the module.
/// Errors  SettingsError for a frozen weight, for a module that is quantized already, and for one
///         without such layers.
/// Source  Jacob et al., "Quantization and training of neural networks for efficient
///         integer-arithmetic-only inference" (2018); Esser et al., "Learned step size
///         quantization" (2020). Values as torch.fake_quantize_* and
///         torch.fused_moving_avg_obs_fake_quant.
template <class Ranges>
  requires(std::is_same_v<Ranges, Moving> || std::is_same_v<Ranges, Learned>)
struct Qat<INT8, Ranges> {
  using kind = kinds::qat;
  using listens = list<on::fit_begin>;
  using after = list<kinds::freeze, kinds::lora>;  // it refuses what they freeze
  using properties = list<property::adapts, property::works_in_layers>;

  static constexpr About about{Term::none, "two operators per layer and pass"};

  QuantizeOptions layers{};  ///< all that quantize<INT8> takes by default
  double averaging = 0.01;   ///< share of the newest batch in the ranges of Moving

  /// What every call of a trainer does to its module first; the second time nothing, and nothing to
  /// a module that was converted, which may be evaluated.
  void adapt(torch::nn::Module& module) const {
    if (!detail::quantized_weight_in(module).empty()) return;
    detail::add_fake_layers(module, layers, [&](at::Tensor const& weight) {
      std::shared_ptr<detail::FakeQuantized> made;
      if constexpr (std::is_same_v<Ranges, Learned>) {
        made = std::make_shared<detail::LearnedRanges>(weight);
      } else {
        made = std::make_shared<detail::MovingRanges>(averaging);
      }
      return made;
    });
  }

  class State {
   public:
    using transient = void;  // the module has the ranges
    explicit State(Qat const&) {}
    void on_fit_begin(FitBegin& phase) {
      detail::require_not_quantized(base_module(phase.module()));
    }
  };
};

/// What Qat does to a module, outside of a fit: before its weights are loaded, for example.
template <class Module, class Ranges>
void adapt(Module& module, Qat<INT8, Ranges> const& policy) {
  detail::require_not_quantized(base_module(module));
  policy.adapt(base_module(module));
}

/// Makes of a module that was trained with Qat the quantized one, where it is. Its integers are
/// those of training. Folds BatchNorm (fold_batch_norm), which changes no integer: a factor of an
/// output is one of its scale.
template <class Module>
QuantizedModule convert(Module& module) {
  return detail::convert_layers(base_module(module));
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/qat.ipp>
#endif
