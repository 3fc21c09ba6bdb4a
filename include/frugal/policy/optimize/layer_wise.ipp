// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/layer_wise.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE LayerWiseRate::LayerWiseRate(std::string layers, double decay,
                                           std::vector<std::string> const& below)
    : layers_(std::move(layers)), decay_(decay), place_(layers_.find(number)) {
  if (place_ == std::string::npos || layers_.find(number, place_ + 1) != std::string::npos) {
    throw SettingsError({.what = "\"" + layers_ + "\" has not one {}",
                         .where = "layer_wise_rate",
                         .why = "{} is the place of the layer's number in a parameter's name",
                         .fix = "Write \"encoder.layer.{}.\"."});
  }
  if (!(decay_ > 0 && decay_ <= std::numeric_limits<double>::max())) {
    throw SettingsError({.what = "decay is " + detail::general(decay_, 6),
                         .where = "layer_wise_rate",
                         .why = "it multiplies the rate of a layer, for the one below",
                         .fix = "Give a number above 0, such as 0.9."});
  }
  for (std::string const& each : below) below_.emplace_back(each);
}

FRUGAL_INLINE std::vector<NamedFactor> LayerWiseRate::operator()(
    std::vector<std::string> const& names) const {
  std::map<std::uint64_t, std::size_t> depth_of;  // by the layer's number
  for (std::string const& name : names) {
    if (auto const layer = layer_of(name)) depth_of[*layer] = 0;
  }
  if (depth_of.empty()) refuse("no parameter is in a layer \"" + layers_ + "\"", names);
  for (NamePattern const& each : below_) {
    if (std::none_of(names.begin(), names.end(),
                     [&](std::string const& name) { return each.matches(name); })) {
      refuse("the pattern '" + each.text() + "' of what is below matches nothing", names);
    }
  }
  std::size_t depth = 0;
  for (auto& [layer, of] : depth_of) of = ++depth;
  std::vector<NamedFactor> factors;
  bool begun = false;
  for (std::string const& name : names) {
    auto const layer = layer_of(name);
    begun = begun || layer.has_value();
    bool const is_below = !layer && (below_.empty() ? !begun : is_named_below(name));
    std::size_t const at = layer ? depth_of.at(*layer) : is_below ? 0 : depth + 1;
    factors.push_back({layer      ? label(*layer)
                       : is_below ? "embeddings"
                                  : "head",
                       std::pow(decay_, static_cast<double>(depth + 1 - at))});
  }
  return factors;
}

FRUGAL_INLINE std::optional<std::uint64_t> LayerWiseRate::layer_of(std::string_view name) const {
  std::string_view const before = std::string_view(layers_).substr(0, place_);
  std::string const after = layers_.substr(place_ + number.size()) + "*";
  auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (matches_pattern(before, name.substr(0, i)) && matches_pattern(after, name.substr(end))) {
      std::uint64_t value = 0;
      std::from_chars(name.data() + i, name.data() + end, value);
      return value;
    }
    i = end;
  }
  return std::nullopt;
}

FRUGAL_INLINE std::string LayerWiseRate::label(std::uint64_t layer) const {
  std::string text =
      layers_.substr(0, place_) + std::to_string(layer) + layers_.substr(place_ + number.size());
  while (text.ends_with('.')) text.pop_back();
  return text;
}

FRUGAL_INLINE void LayerWiseRate::refuse(std::string what, std::vector<std::string> const& names) {
  std::string known;
  for (std::string const& name : names) known += " " + name;
  throw SettingsError({.what = std::move(what),
                       .where = "layer_wise_rate",
                       .why = "the module's parameters are:" + known,
                       .fix = "Write the beginning of a layer's names, with {} for its number, "
                              "and patterns that match."});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE ParameterGroup layer_wise_rate(std::string layers, double decay,
                                             std::vector<std::string> const& below) {
  detail::LayerWiseRate rate(std::move(layers), decay, below);
  return {.name = "layer_wise_rate " + rate.layers(), .lr_factors = rate};
}

}  // namespace frugal
