// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <frugal/compose/declared.hpp>
#include <frugal/compose/list.hpp>
#include <frugal/compose/sentence.hpp>

namespace frugal {

/// What one policy of a recipe does for the loop or for the others: a policy that can says
/// `using provides = list<service::save>`, and who needs it asks the engine for its provider. Two
/// providers of one service are a fault of the recipe.
///
///     name         unique, as that of a kind
///     met<P, S, C> does the policy P, with the State S for the Context C, have what the service
///                  calls?
///     unmet        the sentence for a policy that says it does and has it not
///     twice        the sentence for two providers
template <class S>
concept Service = requires {
  S::name;
  S::unmet::text;
  S::twice::text;
};

namespace detail {

template <class S, class P>
inline constexpr bool is_provided_by = contains<S, typename provides_of<P>::type>;

/// Has a list of policies a provider of the service?
template <class S, class Policies>
inline constexpr bool provided = false;
template <class S, class... Ps>
inline constexpr bool provided<S, list<Ps...>> = (false || ... || is_provided_by<S, Ps>);

/// The policy of a list that provides the service, or `Otherwise`.
template <class S, class Otherwise, class Policies>
struct provider_of {
  using type = Otherwise;
};
template <class S, class Otherwise, class P, class... Ps>
struct provider_of<S, Otherwise, list<P, Ps...>> {
  using type = typename provider_of<S, Otherwise, list<Ps...>>::type;
};
template <class S, class Otherwise, class P, class... Ps>
  requires is_provided_by<S, P>
struct provider_of<S, Otherwise, list<P, Ps...>> {
  using type = P;
};

}  // namespace detail
}  // namespace frugal
