// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/model/quantise.hpp>

namespace frugal {

/// What quantising one layer alone does to a loss.
struct LayerSensitivity {
  std::string layer{};
  double loss = 0;    ///< with this layer quantised
  double change = 0;  ///< from the loss of the module as it is
};

/// The layers of a module, from the one whose quantisation hurts most.
struct Sensitivity {
  double loss = 0;  ///< of the module as it is
  std::vector<LayerSensitivity> layers{};

  friend std::ostream& operator<<(std::ostream& out, Sensitivity const& found);
};

/// Quantises each layer alone, as quantise<Format>(module) would, and calls `measure`, which
/// returns a loss: `[&] { return trainer.evaluate(valid)["loss"]; }`. Leaves the module as it is.
/// What hurts stays in FP32 by QuantiseOptions::except.
///
/// Cost    one call of `measure` per layer, and one.
/// Errors  those of quantise<Format>(module), before the first call.
template <class Format, class Module, class Measure>
Sensitivity sensitivity(Module& module, Measure&& measure, QuantiseOptions const& options = {}) {
  std::vector<detail::WeightedLayer> const layers =
      detail::layers_for<Format>(base_module(module), options);
  detail::refuse_fake_layers(layers, "sensitivity");
  detail::require_finite(layers, "sensitivity");
  Sensitivity found{.loss = static_cast<double>(measure())};
  for (detail::WeightedLayer const& layer : layers) {
    detail::TriedWeight const tried(layer, detail::quantised_weight<Format>(layer));
    double const loss = static_cast<double>(measure());
    found.layers.push_back({layer.name, loss, loss - found.loss});
  }
  // A loss that is no number is the worst.
  auto const harm = [](LayerSensitivity const& each) {
    return std::isnan(each.change) ? std::numeric_limits<double>::infinity() : each.change;
  };
  std::stable_sort(found.layers.begin(), found.layers.end(),
                   [&](auto const& a, auto const& b) { return harm(a) > harm(b); });
  return found;
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/sensitivity.ipp>
#endif
