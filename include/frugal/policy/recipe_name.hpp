// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// A user-defined name for a recipe, instead of the computed one:
///
///     template <>
///     inline constexpr std::string_view frugal::recipe_label<Lean> = "lean";
template <class Recipe>
inline constexpr std::string_view recipe_label{};

namespace detail {

/// Policies of these kinds are named by their argument: AdamW, BF16, Ema.
template <class P>
inline constexpr bool named_by_argument =
    contains<typename P::kind,
             list<kinds::optimizer, kinds::precision, kinds::schedule, kinds::average>>;

/// The policies of a recipe as a program writes them, without the nulls.
template <class... Ps>
std::string written_recipe(list<Ps...>) {
  std::string text;
  [[maybe_unused]] auto const add = [&](bool null, std::string const& name) {
    if (!null) text += (text.empty() ? "" : ", ") + name;
  };
  (add(is_null<Ps>, policy_name<Ps>(Defaults::none)), ...);
  return text;
}

void add_label(std::string& text, std::string const& label);

template <class... Ts>
std::string joined_labels(list<Ts...>) {
  std::string text;
  (add_label(text, written_argument<Ts>::text(Defaults::none)), ...);
  return text;
}

/// A policy's name in a recipe's name: its `label`, or the shortest way to write it.
template <class P>
std::string label_of() {
  if constexpr (requires { std::string_view(P::label); }) {
    return std::string(std::string_view(P::label));
  } else if constexpr (requires { P::identity; } || std::is_void_v<TemplateShape<P>>) {
    return policy_name<P>(Defaults::none);
  } else if constexpr (named_by_argument<P>) {
    return joined_labels(typename TemplateShape<P>::arguments{});
  } else {
    return policy_name<P>(Defaults::none);
  }
}

/// Whether a policy is part of the name. Null policies are not, nor are those that only watch: they
/// declare that they lower nothing.
template <class P>
constexpr bool is_named() {
  if constexpr (requires { P::about; }) {
    return !is_null<P> && (P::kind::slot || P::about.term != Term::none);
  } else {
    return !is_null<P>;
  }
}

template <class R>
struct recipe_in {
  using type = R;
};
template <class Trainer>
  requires requires { typename Trainer::recipe; }
struct recipe_in<Trainer> {
  using type = typename Trainer::recipe;
};

template <class... Ps>
std::string name_of_policies(list<Ps...>) {
  std::string text;
  [[maybe_unused]] auto const name = [&]<class P>(std::type_identity<P>, bool optimizer) {
    if (!is_named<P>() || optimizer != std::same_as<typename P::kind, kinds::optimizer>) return;
    add_label(text, label_of<P>());
  };
  (name(std::type_identity<Ps>{}, true), ...);
  (name(std::type_identity<Ps>{}, false), ...);
  return text.empty() ? "defaults" : text;
}

/// The name, or the first of "name (2)", "name (3)" and so on that is not taken.
template <class IsTaken>
std::string numbered_name(std::string const& name, IsTaken&& is_taken) {
  std::string candidate = name;
  for (int number = 2; is_taken(candidate); ++number) {
    candidate = name + " (" + std::to_string(number) + ")";
  }
  return candidate;
}

}  // namespace detail

/// A recipe's name for tables and files: "AdamW + BF16 + Accumulate<4> + Ema". Takes a Recipe or a
/// Trainer; the result is the same with every compiler.
///
/// The optimizer comes first, the others follow in the order in which they are written. Defaults
/// are omitted, and so are policies that lower no term of the cost (Log, Progress), and values of
/// members, such as lr. A user-defined policy has its type's name, or `static constexpr
/// std::string_view label`; a recipe may have a name of its own (recipe_label).
template <class R>
std::string recipe_name() {
  using recipe = typename detail::recipe_in<R>::type;
  if constexpr (!recipe_label<recipe>.empty()) {
    return std::string(recipe_label<recipe>);
  } else {
    return detail::name_of_policies(typename detail::policies_in<recipe>::type{});
  }
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/recipe_name.ipp>
#endif
