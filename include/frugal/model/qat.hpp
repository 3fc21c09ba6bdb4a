// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/model/fold_batch_norm.hpp>
#include <frugal/model/quantise.hpp>
#include <frugal/model/quantise/fake_layer.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

// How Qat finds the ranges of inputs and weights.
struct Moving {};   ///< moving averages of least and largest numbers
struct Learned {};  ///< scales are parameters (LSQ)

namespace detail {

void require_trainable(WeightedLayer const& layer);

/// The name of a quantised weight of a module; empty without.
std::string quantised_weight_in(torch::nn::Module& root);

void require_not_quantised(torch::nn::Module& root);

/// Gives each layer that lacks one its fake quantisation.
template <class Make>
void add_fake_layers(torch::nn::Module& root, QuantiseOptions const& options, Make const& make) {
  std::vector<WeightedLayer> layers = layers_for<INT8>(root, options);
  std::erase_if(layers, [](WeightedLayer const& each) {
    return each.module->named_children().contains(fake_child);
  });
  for (WeightedLayer const& layer : layers) require_trainable(layer);
  for (WeightedLayer const& layer : layers) {
    std::shared_ptr<FakeQuantised> const fake = make(layer.weight);
    fake->to(layer.weight.device());
    fake->train(layer.module->is_training());
    fake->hook = std::make_shared<FakeLayer>(fake);
    layer.module->register_module(fake_child, fake);
    intercept(layer.weight, fake->hook);
  }
}

/// Puts the quantised weight of each layer in place of its fake quantisation.
QuantisedModule convert_layers(torch::nn::Module& root);

}  // namespace detail

template <class Format = INT8, class Ranges = Moving>
struct Qat {
  static_assert(
      detail::never<Format>,
      "frugal: Qat<...>: unknown option. Options: Qat<INT8>, Qat<INT8, Moving>, Qat<INT8, "
      "Learned>.");
};

/// Quantisation-aware training: forward passes round inputs and weights of linear and convolutional
/// layers as INT8 would, so that training adapts to it. convert() makes the quantised module.
///
/// Lever   dollars of inference: INT8 at the accuracy of FP32, where quantise() alone loses some.
/// Cost    two operators per layer and forward pass, and their backward passes. No host sync with
///         Moving.
/// State   none: the ranges are buffers, or parameters, of the module.
/// Errors  SettingsError for a frozen weight, for a module that is quantised already, and for one
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
  static constexpr bool adapts = true;

  static constexpr About about{Term::none, "two operators per layer and pass"};

  QuantiseOptions layers{};  ///< all that quantise<INT8> takes by default
  double averaging = 0.01;   ///< share of the newest batch in the ranges of Moving

  /// What every call of a trainer does to its module first; the second time nothing, and nothing to
  /// a module that was converted, which may be evaluated.
  void adapt(torch::nn::Module& module) const {
    if (!detail::quantised_weight_in(module).empty()) return;
    detail::add_fake_layers(module, layers, [&](at::Tensor const& weight) {
      std::shared_ptr<detail::FakeQuantised> made;
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
      detail::require_not_quantised(base_module(phase.module()));
    }
  };
};

/// What Qat does to a module, outside of a fit: before its weights are loaded, for example.
template <class Module, class Ranges>
void adapt(Module& module, Qat<INT8, Ranges> const& policy) {
  detail::require_not_quantised(base_module(module));
  policy.adapt(base_module(module));
}

/// Makes of a module that was trained with Qat the quantised one, where it is. Its integers are
/// those of training. Folds BatchNorm (fold_batch_norm), which changes no integer: a factor of an
/// output is one of its scale.
template <class Module>
QuantisedModule convert(Module& module) {
  return detail::convert_layers(base_module(module));
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/qat.ipp>
#endif
