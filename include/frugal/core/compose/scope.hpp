// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <frugal/core/compose/policy.hpp>

// The names under which a recipe's States are saved, and by which a run records which of them have
// completed an event. Unlike positions, names survive a change of the order.
namespace frugal::detail {

/// "Log", and "Log.1" for a second one. `infos` in their computed order.
std::string scope_of(std::span<PolicyInfo const> infos, std::size_t which);

/// The names of the first `count` in order.
std::vector<std::string> first_scopes(std::span<PolicyInfo const> infos, std::size_t count);

/// The scope of a state that is saved.
struct SavedScope {
  std::string name;
  bool dispensable = false;   ///< a recipe may lack it
  bool once_per_run = false;  ///< of a kind that is called in the first process alone
};

/// Those of the policies whose bit is set in `persistent`; and a bit for each that a recipe may lack.
std::vector<SavedScope> saved_scopes(std::span<PolicyInfo const> infos, std::uint64_t persistent,
                                     std::uint64_t dispensable);

inline bool is_among(std::vector<std::string> const& scopes, std::string const& scope) {
  return std::ranges::find(scopes, scope) != scopes.end();
}

/// Appends the names of the policies whose bit is set, if they are not there.
void add_scopes(std::vector<std::string>& to, std::span<PolicyInfo const> infos,
                std::uint64_t which);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/compose/scope.ipp>
#endif
