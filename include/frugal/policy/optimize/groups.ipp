// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/groups.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>

namespace frugal {

FRUGAL_INLINE ParameterGroup no_decay_for_biases_and_norms() {
  return {
      .name = "biases and norms",
      .selects = [](std::string_view, at::Tensor const& parameter) { return parameter.dim() <= 1; },
      .weight_decay_factor = 0.0};
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE ParameterGroup named_unless(ParameterGroup group, std::string const& name) {
  if (group.name.empty()) group.name = name;
  return group;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE ParameterGroup group_by_pattern(std::string const& pattern, ParameterGroup settings) {
  settings.selects = [names = NamePattern(pattern)](std::string_view name, at::Tensor const&) {
    return names.matches(name);
  };
  return detail::named_unless(std::move(settings), pattern);
}

FRUGAL_INLINE ParameterGroup group_by_prefix(std::string const& prefix, ParameterGroup settings) {
  settings.selects = [prefix](std::string_view name, at::Tensor const&) {
    if (!name.starts_with(prefix)) return false;
    return prefix.empty() || prefix.ends_with('.') || name.size() == prefix.size() ||
           name[prefix.size()] == '.';
  };
  return detail::named_unless(std::move(settings), prefix);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void require_at_least_zero(char const* name, double value, std::string const& where) {
  if (value >= 0) return;  // also refuses NaN
  throw SettingsError({.what = std::string(name) + " is " + detail::general(value, 6),
                       .where = where,
                       .why = "it cannot be negative or NaN",
                       .fix = "Give 0 or more."});
}

FRUGAL_INLINE void require_learning_rate(double value, std::string const& where, char const* name) {
  if (value >= 0 && value <= std::numeric_limits<double>::max()) return;
  throw SettingsError({.what = std::string(name) + " is " + detail::general(value, 6),
                       .where = where,
                       .why = "a learning rate must be finite and 0 or more",
                       .fix = "Give a finite number, such as 1e-3."});
}

FRUGAL_INLINE void require_fraction(char const* name, double value, std::string const& where) {
  if (value >= 0 && value < 1) return;
  throw SettingsError({.what = std::string(name) + " is " + detail::general(value, 6),
                       .where = where,
                       .why = "it is a decay rate",
                       .fix = "Give a number from 0 up to, but not including, 1."});
}

FRUGAL_INLINE bool ParameterSettings::same_update(ParameterSettings const& other) const {
  auto const all = [](ParameterSettings const& of) {
    return std::tie(of.lr, of.weight_decay, of.beta1, of.beta2, of.momentum, of.schedules);
  };
  return all(*this) == all(other);
}

FRUGAL_INLINE GroupResolver::GroupResolver(std::vector<ParameterGroup> const& groups,
                                           Parameters const& parameters, ParameterSettings usual,
                                           std::string label)
    : groups_(groups),
      parameters_(parameters),
      usual_(std::move(usual)),
      label_(std::move(label)),
      own_(parameters.size()),
      factors_(parameters.size()),
      rate_rules_(parameters.size()) {
  for (auto& each : value_from_) each.resize(parameters.size());
}

FRUGAL_INLINE GroupSettings GroupResolver::resolve() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    require_in_range(g);
    require_known(g);
    apply(g);
  }
  for (std::size_t i = 0; i < own_.size(); ++i) {
    for (OneValue const& each : one_values) {
      if (!(own_[i].*each.to)) own_[i].*each.to = usual_.*each.to;
    }
    *own_[i].lr *= factors_[i].lr;
    *own_[i].weight_decay *= factors_[i].weight_decay;
  }
  return with_rates();
}

FRUGAL_INLINE void GroupResolver::require_in_range(std::size_t g) const {
  ParameterGroup const& group = groups_[g];
  std::string const at = where(g);
  require_learning_rate(group.lr.value_or(0), at);
  require_learning_rate(group.lr_factor.value_or(0), at, "lr_factor");
  require_at_least_zero("weight_decay", group.weight_decay.value_or(0), at);
  require_at_least_zero("weight_decay_factor", group.weight_decay_factor.value_or(0), at);
  require_fraction("beta1", group.beta1.value_or(0), at);
  require_fraction("beta2", group.beta2.value_or(0), at);
  require_at_least_zero("momentum", group.momentum.value_or(0), at);
}

FRUGAL_INLINE void GroupResolver::require_known(std::size_t g) const {
  for (OneValue const& each : one_values) {
    if (!(groups_[g].*each.in) || usual_.*each.to) continue;
    throw SettingsError({.what = "parameter group '" + groups_[g].name + "' sets " + each.name,
                         .where = where(g),
                         .why = "this optimizer has none",
                         .fix = "Set beta1 and beta2 for Adam and AdamW, and momentum for SGD."});
  }
}

FRUGAL_INLINE void GroupResolver::apply(std::size_t g) {
  ParameterGroup const& group = groups_[g];
  std::vector<NamedFactor> const factors = factors_of(g);
  bool used = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    bool const all = !group.selects && group.lr_factors;
    bool const some = group.selects && parameters_.any_name(i, [&](std::string const& name) {
      return group.selects(name, parameters_.tensors[i]);
    });
    if (!all && !some) continue;
    used = true;
    for (std::size_t v = 0; v < one_values.size(); ++v) give(v, g, i);
    factors_[i].lr *= group.lr_factor.value_or(1.0);
    factors_[i].weight_decay *= group.weight_decay_factor.value_or(1.0);
    if (group.schedule) own_[i].schedules.push_back(g);
    if (group.lr || group.lr_factor || group.schedule) {
      rate_rules_[i].emplace_back(g,
                                  group.name.empty() ? "group_" + std::to_string(g) : group.name);
    }
    if (!group.lr_factors) continue;
    factors_[i].lr *= factors[i].factor;
    rate_rules_[i].emplace_back(g, factors[i].name);
  }
  if (!used) refuse_unused(g);
}

FRUGAL_INLINE std::vector<NamedFactor> GroupResolver::factors_of(std::size_t g) const {
  if (!groups_[g].lr_factors) return {};
  std::vector<NamedFactor> factors = groups_[g].lr_factors(parameters_.names);
  if (factors.size() != parameters_.size()) {
    throw SettingsError({.what = "parameter group '" + groups_[g].name + "' gives " +
                                 std::to_string(factors.size()) + " factors for " +
                                 std::to_string(parameters_.size()) + " parameters",
                         .where = where(g),
                         .why = "lr_factors must return one for each name",
                         .fix = "Return a factor of 1 where nothing is to change."});
  }
  for (NamedFactor const& each : factors) {
    require_learning_rate(each.factor, where(g), "a factor of lr_factors");
  }
  return factors;
}

FRUGAL_INLINE void GroupResolver::give(std::size_t v, std::size_t g, std::size_t i) {
  std::optional<double> const& value = groups_[g].*one_values[v].in;
  std::optional<double>& to = own_[i].*one_values[v].to;
  if (!value) return;
  if (to && *to != *value) refuse_two(v, i, value_from_[v][i], *to, g, *value);
  to = value;
  value_from_[v][i] = g;
}

FRUGAL_INLINE GroupSettings GroupResolver::with_rates() {
  GroupSettings all;
  std::map<std::pair<RateRules, double>, std::size_t> known;
  std::map<std::string, int> times;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    auto const [entry, is_new] =
        known.emplace(std::pair(rate_rules_[i], *own_[i].lr), all.rates.size());
    own_[i].rate = entry->second;
    if (!is_new) continue;
    std::string name;
    for (auto const& rule : rate_rules_[i]) name += (name.empty() ? "" : "+") + rule.second;
    if (name.empty()) name = "default";
    int const count = ++times[name];
    if (count > 1) name += "_" + std::to_string(count);
    all.rates.push_back({name, *own_[i].lr});
    all.schedules.push_back(own_[i].schedules);
  }
  for (ParameterSettings const& each : own_) {
    auto const is_same = [&](ParameterSettings const& other) { return each.same_update(other); };
    if (std::ranges::none_of(all.distinct, is_same)) all.distinct.push_back(each);
  }
  all.parameters = std::move(own_);
  return all;
}

FRUGAL_INLINE void GroupResolver::refuse_two(std::size_t v, std::size_t i, std::size_t first,
                                             double one, std::size_t second, double other) const {
  throw SettingsError({.what = "parameter groups '" + groups_[first].name + "' and '" +
                               groups_[second].name + "' both give '" + parameters_.names[i] +
                               "' its " + one_values[v].name,
                       .where = where(),
                       .why = "they are " + general(one, 6) + " and " + general(other, 6),
                       .fix = "Let only one of them select it, or set it in one of them alone."});
}

FRUGAL_INLINE void GroupResolver::refuse_unused(std::size_t g) const {
  std::string known;
  for (std::string const& name : parameters_.names) known += " " + name;
  throw SettingsError({.what = "parameter group '" + groups_[g].name + "' selects nothing",
                       .where = where(g),
                       .why = "the optimizer's parameters are:" + known,
                       .fix = "Fix its `selects`, or remove the group."});
}

FRUGAL_INLINE GroupSettings resolve_groups(std::vector<ParameterGroup> const& groups,
                                           Parameters const& own, ParameterSettings usual,
                                           TensorPlaces const& places, std::string const& label) {
  if (places.empty()) return GroupResolver(groups, own, std::move(usual), label).resolve();
  std::map<std::string, std::size_t> mine;
  for (std::size_t i = 0; i < own.size(); ++i) mine.emplace(own.names[i], i);
  Parameters all;
  std::vector<std::size_t> at(own.size());  // in `all`
  auto const add = [&](std::string const& name, at::Tensor const& tensor) {
    all.names.push_back(name);
    all.tensors.push_back(tensor);
  };
  for (std::string const& name : places.order) {
    PlacedTensor const& placed = places.tensors.find(name)->second;
    if (auto const here = mine.extract(name)) {
      at[here.mapped()] = all.size();
      add(name, own.tensors[here.mapped()]);
    } else if (placed.place == PlacedTensor::Place::elsewhere) {
      auto const type = static_cast<at::ScalarType>(placed.type);
      add(name, at::empty(placed.sizes, at::TensorOptions(type).device(at::kMeta))
                    .requires_grad_(placed.trained));
    }
  }
  for (auto const& [name, i] : mine) {  // a policy's own
    at[i] = all.size();
    add(name, own.tensors[i]);
  }
  GroupSettings settings = GroupResolver(groups, all, std::move(usual), label).resolve();
  std::vector<ParameterSettings> of_own;
  for (std::size_t const i : at) of_own.push_back(settings.parameters[i]);
  settings.parameters = std::move(of_own);
  return settings;
}

FRUGAL_INLINE RateSchedules::RateSchedules(std::vector<ParameterGroup> const& groups,
                                           GroupSettings const& settings, RunLimits const& horizon)
    : of_rate_(settings.schedules) {
  for (ParameterGroup const& group : groups) {
    names_.push_back(group.name);
    of_group_.emplace_back();
    if (!group.schedule) continue;
    some_ = true;
    GroupSchedule::Laid laid = group.schedule.over(horizon);
    of_group_.back() = std::move(laid.factor);
    if (!laid.outlook.empty()) {
      outlooks_.push_back("the schedule of parameter group '" + group.name + "': " + laid.outlook);
    }
  }
}

FRUGAL_INLINE std::vector<double> RateSchedules::factors(std::uint64_t step) const {
  std::vector<double> of_group(of_group_.size(), 1.0);
  for (std::size_t g = 0; g < of_group.size(); ++g) {
    if (!of_group_[g]) continue;
    of_group[g] = of_group_[g](step);
    if (!(of_group[g] >= 0 && of_group[g] <= std::numeric_limits<double>::max())) {
      refuse(g, of_group[g], step);
    }
  }
  std::vector<double> factors;
  for (auto const& groups : of_rate_) {
    double factor = 1.0;
    for (std::size_t const g : groups) factor *= of_group[g];
    factors.push_back(factor);
  }
  return factors;
}

FRUGAL_INLINE void RateSchedules::require_none() const {
  if (!some_) return;
  throw SettingsError({.what = "a parameter group has a schedule of its own",
                       .where = "Optimize::groups",
                       .why = "CudaGraph replays a step with one factor for all rates",
                       .fix = "Use the recipe's Schedule, or leave out CudaGraph."});
}

FRUGAL_INLINE void RateSchedules::refuse(std::size_t group, double factor,
                                         std::uint64_t step) const {
  throw SettingsError({.what = "the schedule of parameter group '" + names_[group] +
                               "' gives the factor " + detail::general(factor, 6),
                       .where = "before step " + std::to_string(step),
                       .why = "a factor of a learning rate must be finite and 0 or more",
                       .fix = "Check the group's schedule."});
}

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
