// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string_view>

namespace frugal {

/// A slot is filled exactly once in every recipe. If the recipe does not fill it, its null policy
/// does (null_policy below), which transforms nothing and costs nothing.
struct slot_kind {
  static constexpr bool slot = true;
  static constexpr bool repeatable = false;
  static constexpr int rank = 0;  ///< higher ranks run after lower ones, unless before or after say
                                  ///< otherwise
};

/// An observer only watches. A recipe has at most one of each kind.
struct optional_kind {
  static constexpr bool slot = false;
  static constexpr bool repeatable = false;
  static constexpr int rank = 0;
};

/// An observer of which a recipe may have several (two logs with two cadences).
struct repeatable_kind {
  static constexpr bool slot = false;
  static constexpr bool repeatable = true;
  static constexpr int rank = 0;
};

/// The identity of a policy, whatever its parameters. Kinds are compared by name. It also labels
/// the policy's part of a checkpoint and breaks ties in the order, so it must be unique.
template <class K>
concept Kind = requires {
  { K::name } -> std::convertible_to<std::string_view>;
  { K::slot } -> std::convertible_to<bool>;
  { K::repeatable } -> std::convertible_to<bool>;
  { K::rank } -> std::convertible_to<int>;
};

/// The policy that fills a slot which the recipe leaves open. Specialised next to each null policy.
template <class Kind>
struct null_policy;

}  // namespace frugal
