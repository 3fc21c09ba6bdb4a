// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/name_pattern.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/optimize/groups.hpp>

namespace frugal {

namespace detail {

/// The factors of layer_wise_rate.
class LayerWiseRate {
 public:
  LayerWiseRate(std::string layers, double decay, std::vector<std::string> const& below);

  std::string const& layers() const { return layers_; }

  std::vector<NamedFactor> operator()(std::vector<std::string> const& names) const;

 private:
  static constexpr std::string_view number = "{}";

  std::optional<std::uint64_t> layer_of(std::string_view name) const;

  bool is_named_below(std::string_view name) const {
    return std::any_of(below_.begin(), below_.end(),
                       [&](NamePattern const& each) { return each.matches(name); });
  }

  /// "encoder.layer.3"
  std::string label(std::uint64_t layer) const;

  [[noreturn]] static void refuse(std::string what, std::vector<std::string> const& names);

  std::string layers_;
  double decay_;
  std::size_t place_;  // of {}
  std::vector<NamePattern> below_;
};

}  // namespace detail

/// Layer-wise learning rates: the head has the factor 1, the last layer `decay`, each layer below
/// it `decay` times that of the one above, and the embeddings that of the first layer once more.
/// With n layers, layer i (from 1) has `decay^(n + 1 - i)`, the embeddings `decay^(n + 1)`.
///
///     layer_wise_rate("encoder.layer.{}.", 0.9)
///
/// `layers` is how the names of a layer's parameters begin, with {} for its number; `*` stands for
/// any text. Numbers give the order, and need not be consecutive. Of all other parameters, those
/// before the first layer's in named_parameters() are the embeddings, the others the head. If the
/// module registers them in another order, name the embeddings: `below` has patterns (NamePattern).
///
/// Source  Bao et al., "BEiT" (2022), and its LayerDecayValueAssigner, timm's
///         param_groups_layer_decay likewise. Clark et al., "ELECTRA" (2020), whose code has one
///         more `decay` between the head and the last layer.
ParameterGroup layer_wise_rate(std::string layers, double decay,
                               std::vector<std::string> const& below = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/layer_wise.ipp>
#endif
