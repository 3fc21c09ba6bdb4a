// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
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

/// Those of the policies whose bit is set in `persistent`; and a bit for each that a recipe may lack.
FRUGAL_INLINE std::vector<SavedScope> saved_scopes(std::span<PolicyInfo const> infos,
                                                   std::uint64_t persistent,
                                                   std::uint64_t dispensable) {
  std::vector<SavedScope> scopes;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((persistent >> i) & 1U) == 0) continue;
    scopes.push_back({scope_of(infos, i), ((dispensable >> i) & 1U) != 0, infos[i].once_per_run});
  }
  return scopes;
}

inline bool is_among(std::vector<std::string> const& scopes, std::string const& scope) {
  return std::ranges::find(scopes, scope) != scopes.end();
}

/// Appends the names of the policies whose bit is set, if they are not there.
FRUGAL_INLINE void add_scopes(std::vector<std::string>& to, std::span<PolicyInfo const> infos,
                              std::uint64_t which) {
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((which >> i) & 1U) == 0) continue;
    std::string scope = scope_of(infos, i);
    if (!is_among(to, scope)) to.push_back(std::move(scope));
  }
}

}  // namespace frugal::detail
