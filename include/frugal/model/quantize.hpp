// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/options.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/refused_source.hpp>
#include <frugal/error.hpp>
#include <frugal/model/finite_weight.hpp>
#include <frugal/model/quantize/quantized_weight.hpp>
#include <frugal/model/where.hpp>

namespace frugal {

/// Which layers quantize() takes; all by default.
struct QuantizeOptions {
  std::optional<NamePatterns> only{};    ///< layers with these names
  std::optional<NamePatterns> except{};  ///< not those with these, such as an output layer
};

/// What quantize() did.
struct QuantizedModule {
  std::vector<std::string> layers{};  ///< quantized, by name
  std::uint64_t bytes_before = 0;     ///< of parameters and buffers
  std::uint64_t bytes = 0;

  friend std::ostream& operator<<(std::ostream& out, QuantizedModule const& made) {
    return out << made.layers.size() << " layers quantized: " << made.bytes << " of "
               << made.bytes_before << " bytes";
  }
};

namespace detail {

/// Bytes of the storages that a module's parameters and buffers keep.
std::uint64_t stored_bytes(torch::nn::Module& module);

/// The layers that the options name.
std::vector<WeightedLayer> chosen_layers(torch::nn::Module& module, QuantizeOptions const& options,
                                         std::string const& where);

void require_layers(std::vector<WeightedLayer> const& layers, char const* format,
                    char const* takes);

/// The INT8 weight of a layer.
std::shared_ptr<Int8Weight> int8_weight_of(WeightedLayer const& layer,
                                           std::optional<InputGrid> grid);

void refuse_fake_layers(std::vector<WeightedLayer> const& layers, char const* where = "quantize");

/// ModuleError for a layer whose weight is NaN or infinite: its integers would be those of no weight.
void require_finite(std::vector<WeightedLayer> const& layers, char const* where);

/// The layers that the options name and the format can quantize; not none.
template <class Format>
std::vector<WeightedLayer> layers_for(torch::nn::Module& module, QuantizeOptions const& options) {
  static_assert(std::is_same_v<Format, INT8> || std::is_same_v<Format, INT4>,
                "frugal: quantize<...>: unknown format. Options: INT8, INT4.");
  std::vector<WeightedLayer> layers =
      chosen_layers(module, options, "quantize<" + std::string(Format::name) + ">");
  if constexpr (std::is_same_v<Format, INT4>) {
    std::erase_if(layers, [](auto const& each) { return !Int4Weight::takes(each.weight); });
    require_layers(layers, Format::name,
                   "linear layers on the CPU whose inputs and outputs are multiples of 64,");
  } else {
    require_layers(layers, Format::name, "linear layers and 2-D convolutions of one group");
  }
  for (WeightedLayer const& layer : layers) {
    if (layer.weight.dim() != 2 || shows_products(layer.weight)) continue;
    throw SettingsError({.what = "layer '" + layer.name + "' cannot be quantized",
                         .where = "quantize<" + std::string(Format::name) + ">",
                         .why = "its weight is a view of another tensor or was made in "
                                "c10::InferenceMode, and the calls of such a Linear are not seen",
                         .fix = "Give the layer a weight of its own, and make the module outside "
                                "of InferenceMode; it may be called inside."});
  }
  return layers;
}

/// The weight of a layer in a format; an input's scale follows its numbers.
template <class Format>
std::shared_ptr<QuantizedWeight> quantized_weight(WeightedLayer const& layer) {
  if constexpr (std::is_same_v<Format, INT4>) {
    return std::make_shared<Int4Weight>(layer.weight.detach());
  } else {
    return int8_weight_of(layer, std::nullopt);
  }
}

/// The layer computes with this weight from now on; its own is gone.
void put_in(WeightedLayer const& layer, std::shared_ptr<QuantizedWeight> weight);

/// Shows a layer's input to `look`.
class LooksAtInput final : public LayerHook {
 public:
  explicit LooksAtInput(std::function<void(at::Tensor const&)> look) : look_(std::move(look)) {}
  Place place() const override { return Place::observe; }
  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    look_(call.input);
    return rest(call);
  }

 private:
  std::function<void(at::Tensor const&)> look_;
};

/// Shows the inputs of layers while it lives.
class [[nodiscard]] ObservedInputs {
 public:
  template <class Look>
  ObservedInputs(std::vector<WeightedLayer> const& layers, Look const& look) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      hooks_.emplace_back(layers[i].weight, std::make_shared<LooksAtInput>(
                                                [look, i](at::Tensor const& x) { look(i, x); }));
      intercept(hooks_.back().first, hooks_.back().second);
    }
  }
  ObservedInputs(ObservedInputs const&) = delete;
  ObservedInputs& operator=(ObservedInputs const&) = delete;
  ~ObservedInputs() {
    for (auto const& [weight, hook] : hooks_) release(weight, *hook);
  }

 private:
  std::vector<std::pair<at::Tensor, std::shared_ptr<LayerHook>>> hooks_;
};

/// Applies the module to the data of a batch.
struct PassesData {
  template <class Module, class B>
  void operator()(Module& module, B const& batch) const {
    if constexpr (std::is_convertible_v<B const&, at::Tensor>) {
      forward(module, at::Tensor(batch));
    } else {
      forward(module, batch_data(batch));
    }
  }
};

/// Runs a module over a source, in evaluation mode and without gradients.
template <class Module, class Source, class Pass>
void run_over(Module& module, Source& source, Pass& pass) {
  torch::nn::Module& base = base_module(module);
  at::NoGradGuard const no_gradients;
  EvaluationMode const mode(base);
  c10::Device const device = device_of_tensors(base);
  source.seek(Cursor{.in_order = true});
  bool any = false;
  while (auto batch = source.next()) {
    batch_to(*batch, device);
    pass(module, std::as_const(*batch));
    any = true;
  }
  if (!any) refuse_empty_source("calibration", 0);
}

void require_seen(WeightedLayer const& layer, SeenInput const& seen);

}  // namespace detail

/// Quantizes the linear and convolutional layers of a trained module where it is: INT8 with a scale
/// for each output, and inputs by the scale of their moment (dynamic); INT4 for weights alone.
/// Fits, evaluations and predictions then work as before; the weights take a quarter or an eighth
/// of the memory, and are not trained any more.
///
/// Errors  SettingsError for a module without such a layer, and for a pattern without a layer; ModuleError
///         for a weight that is NaN or infinite. The module is then unchanged.
/// Source  torchao's Int8DynamicActivationInt8Weight and Int4WeightOnly configurations.
template <class Format, class Module>
QuantizedModule quantize(Module& module, QuantizeOptions const& options = {}) {
  torch::nn::Module& base = base_module(module);
  std::vector<detail::WeightedLayer> const layers = detail::layers_for<Format>(base, options);
  detail::refuse_fake_layers(layers);
  detail::require_finite(layers, "quantize");
  QuantizedModule made{.layers = {}, .bytes_before = detail::stored_bytes(base)};
  for (detail::WeightedLayer const& layer : layers) {
    detail::put_in(layer, detail::quantized_weight<Format>(layer));
    made.layers.push_back(layer.name);
  }
  made.bytes = detail::stored_bytes(base);
  return made;
}

/// The same with ranges of inputs that are found once, over a source (static): MinMax, Percentile
/// or Entropy. `pass(module, batch)` runs the module on a batch. The source is read twice for the
/// last two.
///
/// Errors  also StateError for a layer that the source does not reach, or whose input is not
///         finite.
template <class Format, class Module, class Data, class Ranges = MinMax,
          class Pass = detail::PassesData>
  requires(!std::is_same_v<std::remove_cvref_t<Data>, QuantizeOptions>)
QuantizedModule quantize(Module& module, Data&& data, Ranges const& ranges = {},
                         QuantizeOptions const& options = {}, Pass&& pass = {}) {
  static_assert(std::is_same_v<Format, INT8>,
                "frugal: quantize<Format>(module, source) calibrates inputs, which only INT8 "
                "quantizes. Write quantize<INT4>(module).");
  torch::nn::Module& base = base_module(module);
  std::vector<detail::WeightedLayer> const layers = detail::layers_for<INT8>(base, options);
  detail::refuse_fake_layers(layers);
  detail::require_finite(layers, "quantize");
  auto&& source = as_source(std::forward<Data>(data));
  std::vector<detail::SeenInput> seen(layers.size());
  {
    detail::ObservedInputs const all(
        layers, [&](std::size_t i, at::Tensor const& input) { seen[i].extend(input); });
    detail::run_over(module, source, pass);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) detail::require_seen(layers[i], seen[i]);
  if constexpr (Ranges::bins != 0) {
    detail::ObservedInputs const all(layers, [&](std::size_t i, at::Tensor const& input) {
      seen[i].count(input, Ranges::bins, Ranges::symmetric);
    });
    detail::run_over(module, source, pass);
  }
  std::vector<detail::InputGrid> grids;
  for (detail::SeenInput const& each : seen) {
    grids.push_back(detail::InputGrid::of(each.range(ranges)));
  }
  QuantizedModule made{.layers = {}, .bytes_before = detail::stored_bytes(base)};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    detail::put_in(layers[i], detail::int8_weight_of(layers[i], grids[i]));
    made.layers.push_back(layers[i].name);
  }
  made.bytes = detail::stored_bytes(base);
  return made;
}

/// What quantizing one layer alone does to a loss.
struct LayerSensitivity {
  std::string layer{};
  double loss = 0;    ///< with this layer quantized
  double change = 0;  ///< from the loss of the module as it is
};

/// The layers of a module, from the one whose quantization hurts most.
struct Sensitivity {
  double loss = 0;  ///< of the module as it is
  std::vector<LayerSensitivity> layers{};

  friend std::ostream& operator<<(std::ostream& out, Sensitivity const& found);
};

/// Quantizes each layer alone, as quantize<Format>(module) would, and calls `measure`, which
/// returns a loss: `[&] { return trainer.evaluate(valid)["loss"]; }`. Leaves the module as it is.
/// What hurts stays in FP32 by QuantizeOptions::except.
///
/// Cost    one call of `measure` per layer, and one.
/// Errors  those of quantize<Format>(module), before the first call.
template <class Format, class Module, class Measure>
Sensitivity sensitivity(Module& module, Measure&& measure, QuantizeOptions const& options = {}) {
  std::vector<detail::WeightedLayer> const layers =
      detail::layers_for<Format>(base_module(module), options);
  detail::refuse_fake_layers(layers, "sensitivity");
  detail::require_finite(layers, "sensitivity");
  Sensitivity found{.loss = static_cast<double>(measure())};
  for (detail::WeightedLayer const& layer : layers) {
    detail::TriedWeight const tried(layer, detail::quantized_weight<Format>(layer));
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
#include <frugal/model/quantize.ipp>
#endif
