// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/groups.hpp>

#include <frugal/base/name_pattern.hpp>
#include <frugal/inline.hpp>

#include <utility>

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
