// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/policy/optimize/group_schedule.hpp>

namespace frugal {

/// What a rule of many rates gives one parameter, and the name of its rate in the log.
struct NamedFactor {
  std::string name{};
  double factor = 1.0;
};

/// A rule for some of the parameters: it gives each that it selects the settings below. Rules of
/// different settings compose. Factors of several rules multiply. Two rules that give a parameter
/// two values of a setting are a SettingsError; what no rule sets is the optimizer's.
struct ParameterGroup {
  /// For error messages and, if it changes the learning rate, for the log: "lr/<name>".
  std::string name{};
  /// Whether this parameter (its name as in named_parameters(), and its tensor) is in the group.
  std::function<bool(std::string_view name, at::Tensor const& parameter)> selects{};
  std::optional<double> lr{};
  std::optional<double> lr_factor{};  ///< multiplies the rate, a rule's or the optimizer's
  std::optional<double> weight_decay{};
  std::optional<double> weight_decay_factor{};  ///< multiplies the decay likewise
  std::optional<double> beta1{};                ///< of Adam and AdamW
  std::optional<double> beta2{};                ///< of Adam and AdamW
  std::optional<double> momentum{};             ///< of SGD
  GroupSchedule schedule{};                     ///< multiplies the rate at each step
  /// A factor of the rate for each of these parameters, all of the module's (layer_wise_rate).
  /// Without `selects`, for all of them.
  std::function<std::vector<NamedFactor>(std::vector<std::string> const& names)> lr_factors{};
};

/// Biases and normalisation weights: parameters with at most one dimension. Weight decay on these
/// only costs accuracy. A factor, so that it composes with rules that set a decay.
ParameterGroup no_decay_for_biases_and_norms();

namespace detail {

ParameterGroup named_unless(ParameterGroup group, std::string const& name);

}  // namespace detail

/// The parameters whose names match a pattern (NamePattern), with these settings:
///
///     group_by_pattern("*.lora.*.B", {.lr_factor = 16})
ParameterGroup group_by_pattern(std::string const& pattern, ParameterGroup settings = {});

/// The parameters of a submodule, such as "head", or one parameter, "head.weight". Names match by
/// whole components: "1" selects "1.weight", and not "10.weight".
ParameterGroup group_by_prefix(std::string const& prefix, ParameterGroup settings = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/groups.ipp>
#endif
