// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/scope.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string scope_of(std::span<PolicyInfo const> infos, std::size_t which) {
  std::size_t before = 0;
  for (std::size_t i = 0; i < which; ++i) before += infos[i].kind == infos[which].kind;
  std::string scope(infos[which].kind);
  if (before != 0) scope.append(1, '.').append(std::to_string(before));
  return scope;
}

FRUGAL_INLINE std::vector<std::string> first_scopes(std::span<PolicyInfo const> infos,
                                                    std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(count, infos.size()); ++i) {
    names.push_back(scope_of(infos, i));
  }
  return names;
}

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

FRUGAL_INLINE void add_scopes(std::vector<std::string>& to, std::span<PolicyInfo const> infos,
                              std::uint64_t which) {
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((which >> i) & 1U) == 0) continue;
    std::string scope = scope_of(infos, i);
    if (!is_among(to, scope)) to.push_back(std::move(scope));
  }
}

}  // namespace frugal::detail
