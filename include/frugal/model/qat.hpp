// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/finite_weight.hpp>
#include <frugal/model/fold_batch_norm.hpp>
#include <frugal/model/quantise.hpp>
#include <frugal/model/quantise/fake_layer.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

// How Qat finds the ranges of inputs and weights.
struct Moving {};   ///< moving averages of least and largest numbers
struct Learned {};  ///< scales are parameters (LSQ)

namespace detail {

FRUGAL_INLINE void require_trainable(WeightedLayer const& layer) {
  if (layer.weight.requires_grad()) return;
  throw SettingsError({.what = "the weight of layer '" + layer.name + "' is frozen",
                       .where = "Qat<INT8>",
                       .why = "training cannot adapt it to the rounding of its range",
                       .fix = "Train it, or leave it out with Qat::layers.except and give it to "
                              "quantise<INT8> afterwards."});
}

/// The name of a quantised weight of a module; empty without.
FRUGAL_INLINE std::string quantised_weight_in(torch::nn::Module& root) {
  for (auto const& item : root.named_modules({}, /*include_self=*/false)) {
    if (std::dynamic_pointer_cast<QuantisedWeight>(item.value()) != nullptr) return item.key();
  }
  return {};
}

FRUGAL_INLINE void require_not_quantised(torch::nn::Module& root) {
  std::string const name = quantised_weight_in(root);
  if (name.empty()) return;
  throw SettingsError({.what = "'" + name + "' is quantised already, and its range is fixed",
                       .where = "Qat<INT8>",
                       .why = "there is no FP32 weight left to train",
                       .fix = "Use Qat on the module before quantise or convert."});
}

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
FRUGAL_INLINE QuantisedModule convert_layers(torch::nn::Module& root) {
  struct Found {
    WeightedLayer layer;
    std::shared_ptr<FakeQuantised> fake;
  };
  std::vector<Found> found;
  for (WeightedLayer const& layer : weighted_layers(root)) {
    std::shared_ptr<torch::nn::Module> const* const child =
        layer.module->named_children().find(fake_child);
    if (child == nullptr) continue;
    auto fake = std::dynamic_pointer_cast<FakeQuantised>(*child);
    if (!fake->ranged()) {
      throw StateError({.what = "layer '" + layer.name + "' has no range of its input",
                        .where = "convert",
                        .why = "no training step has called it, or its input was not finite",
                        .fix = "Train it with Qat first, or load weights that were."});
    }
    require_finite(layer.weight, layer.name, "convert");
    for (at::Tensor const& scale : fake->parameters()) {
      if (scale.isfinite().all().item<bool>()) continue;
      throw StateError({.what = "the learned scales of layer '" + layer.name + "' are not finite",
                        .where = "convert",
                        .why = "training has diverged",
                        .fix = "Return to an earlier checkpoint, and lower the learning rate."});
    }
    found.push_back({layer, std::move(fake)});
  }
  if (found.empty()) {
    throw StateError({.what = "no layer of this module was trained with Qat",
                      .where = "convert",
                      .why = "it makes quantised weights of fake ones",
                      .fix = "Train with Qat first, or call quantise<INT8>."});
  }
  QuantisedModule made{.layers = {}, .bytes_before = stored_bytes(root)};
  for (Found const& each : found) {
    WeightedLayer const& layer = each.layer;
    Quantised const integers = each.fake->integers(layer.weight);
    release(layer.weight, *each.fake->hook);
    layer.module->unregister_module(fake_child);
    put_in(layer, std::make_shared<Int8Weight>(integers.values.view(layer.weight.sizes()),
                                               integers.scales, each.fake->grid()));
    made.layers.push_back(layer.name);
  }
  fold_batch_norm(root);
  made.bytes = stored_bytes(root);
  return made;
}

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
