// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <frugal/core/compose/policy.hpp>
#include <frugal/inline.hpp>

// The names under which a recipe's States are saved, and by which a run records which of them have
// completed an event. Unlike positions, names survive a change of the order.
namespace frugal::detail {

/// "Log", and "Log.1" for a second one. `infos` in their computed order.
FRUGAL_INLINE std::string scope_of(std::span<PolicyInfo const> infos, std::size_t which) {
  std::size_t before = 0;
  for (std::size_t i = 0; i < which; ++i) before += infos[i].kind == infos[which].kind;
  std::string scope(infos[which].kind);
  if (before != 0) scope.append(1, '.').append(std::to_string(before));
  return scope;
}

/// The names of the first `count` in order.
FRUGAL_INLINE std::vector<std::string> first_scopes(std::span<PolicyInfo const> infos,
                                                    std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(count, infos.size()); ++i) {
    names.push_back(scope_of(infos, i));
  }
  return names;
}

/// The scope of a state that is saved.
struct SavedScope {
  std::string name;
  bool dispensable = false;   ///< a recipe may lack it
  bool once_per_run = false;  ///< of a kind that is called in the first process alone
};

inline bool is_among(std::vector<std::string> const& scopes, std::string const& scope) {
  return std::ranges::find(scopes, scope) != scopes.end();
}

}  // namespace frugal::detail
