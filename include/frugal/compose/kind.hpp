// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string_view>

namespace frugal {

/// A slot is filled exactly once in every recipe; what a recipe does not fill, its null
/// default fills (null_policy below), which transforms nothing and costs nothing.
struct slot_kind {
  static constexpr bool slot = true;
  static constexpr bool repeatable = false;
  static constexpr int rank = 0;  ///< a higher one comes after all lower ones that do not object
};

/// An observer watches. A recipe has at most one of a kind.
struct observer_kind {
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

/// What a policy is, whatever its parameters. Kinds are compared by name, which also names
/// the policy's part of a checkpoint and breaks ties of the order: two kinds, two names.
template <class K>
concept Kind = requires {
  { K::name } -> std::convertible_to<std::string_view>;
  { K::slot } -> std::convertible_to<bool>;
  { K::repeatable } -> std::convertible_to<bool>;
  { K::rank } -> std::convertible_to<int>;
};

/// The policy that fills a slot which the recipe leaves open. Specialised beside each null.
template <class Kind>
struct null_policy;

}  // namespace frugal
