// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// Parameters with their own optimizer settings. A parameter takes each setting from the group that
/// selects it and sets it, or else from the optimizer. SettingsError if two groups give it two
/// values.
struct ParameterGroup {
  std::string name;  ///< for error messages
  /// Whether this parameter (its name as in named_parameters(), and its tensor) is in the group.
  std::function<bool(std::string_view name, at::Tensor const& parameter)> selects;
  std::optional<double> lr{};            ///< default: the optimizer's
  std::optional<double> weight_decay{};  ///< likewise
};

/// Biases and normalisation weights: parameters with at most one dimension. Weight decay on these
/// only costs accuracy.
FRUGAL_INLINE ParameterGroup no_decay_for_biases_and_norms() {
  return {
      .name = "biases and norms",
      .selects = [](std::string_view, at::Tensor const& parameter) { return parameter.dim() <= 1; },
      .weight_decay = 0.0};
}

/// The parameters of a submodule, such as "head", or one parameter, "head.weight". Names match by
/// whole components: "1" selects "1.weight", and not "10.weight".
FRUGAL_INLINE ParameterGroup group_by_prefix(std::string prefix) {
  return {.name = prefix,
          .selects = [prefix = std::move(prefix)](std::string_view name, at::Tensor const&) {
            if (!name.starts_with(prefix)) return false;
            return prefix.empty() || prefix.ends_with('.') || name.size() == prefix.size() ||
                   name[prefix.size()] == '.';
          }};
}

namespace detail {

FRUGAL_INLINE void require_at_least_zero(char const* name, double value, std::string const& where) {
  if (value >= 0) return;  // also refuses NaN
  throw SettingsError({.what = std::string(name) + " is " + std::to_string(value),
                       .where = where,
                       .why = "it cannot be negative or NaN",
                       .fix = "Give 0 or more."});
}
FRUGAL_INLINE void require_learning_rate(double value, std::string const& where) {
  if (value >= 0 && value <= std::numeric_limits<double>::max()) return;
  throw SettingsError({.what = "lr is " + std::to_string(value),
                       .where = where,
                       .why = "a learning rate must be finite and 0 or more",
                       .fix = "Give a finite number, such as 1e-3."});
}
FRUGAL_INLINE void require_fraction(char const* name, double value, char const* optimizer) {
  if (value >= 0 && value < 1) return;
  throw SettingsError({.what = std::string(name) + " is " + std::to_string(value),
                       .where = optimizer,
                       .why = "it is a decay rate",
                       .fix = "Give a number from 0 up to, but not including, 1."});
}

/// What a parameter has of its own; nothing: the optimizer's.
struct GroupSettings {
  std::optional<double> lr{};
  std::optional<double> weight_decay{};
};

[[noreturn]] FRUGAL_INLINE void refuse_two_groups(char const* setting, std::string const& parameter,
                                                  ParameterGroup const& first, double one,
                                                  ParameterGroup const& second, double other) {
  throw SettingsError({.what = "parameter groups '" + first.name + "' and '" + second.name +
                               "' both give '" + parameter + "' its " + setting,
                       .where = "Optimize::groups",
                       .why = "they are " + std::to_string(one) + " and " + std::to_string(other),
                       .fix = "Let only one of them select it, or set it in one of them alone."});
}

/// The settings of each parameter. SettingsError for a group that selects nothing, which is usually
/// a misspelt name, for two groups that give a parameter two values of a setting, and for settings
/// out of range.
FRUGAL_INLINE std::vector<GroupSettings> group_settings(std::vector<ParameterGroup> const& groups,
                                                        Parameters const& parameters) {
  std::vector<GroupSettings> settings(parameters.size());
  std::vector<std::size_t> rate_from(parameters.size()), decay_from(parameters.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::string const where = "Optimize::groups[" + std::to_string(g) + "]";
    require_learning_rate(groups[g].lr.value_or(0), where);
    require_at_least_zero("weight_decay", groups[g].weight_decay.value_or(0), where);
    bool used = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!groups[g].selects || !groups[g].selects(parameters.names[i], parameters.tensors[i])) {
        continue;
      }
      used = true;
      auto const give = [&](char const* name, std::optional<double> const& value,
                            std::optional<double>& to, std::size_t& from) {
        if (!value) return;
        if (to && *to != *value) {
          refuse_two_groups(name, parameters.names[i], groups[from], *to, groups[g], *value);
        }
        to = value;
        from = g;
      };
      give("lr", groups[g].lr, settings[i].lr, rate_from[i]);
      give("weight_decay", groups[g].weight_decay, settings[i].weight_decay, decay_from[i]);
    }
    if (!used) {
      std::string known;
      for (std::string const& name : parameters.names) known += " " + name;
      throw SettingsError({.what = "parameter group '" + groups[g].name + "' selects nothing",
                           .where = where,
                           .why = "the module's parameters are:" + known,
                           .fix = "Fix its `selects`, or remove the group."});
    }
  }
  return settings;
}

}  // namespace detail
}  // namespace frugal
