// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <frugal/core/compose/declared.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>

namespace frugal {

/// Something that one policy of a recipe does for the loop or for others. The provider declares
/// `using provides = list<service::save>`; users ask the engine for the provider. A recipe with two
/// providers of one service is illegal.
///
///    name         unique, like a kind's
///    met<P, S>    whether policy P, with State S, has the members that the service calls
///    unmet        the sentence for a policy that declares the service without these members
///    twice        the sentence for two providers
template <class S>
concept Service = requires {
  S::name;
  S::unmet::text;
  S::twice::text;
};

namespace detail {

template <class S, class P>
inline constexpr bool is_provided_by = contains<S, typename provides_of<P>::type>;

/// Whether a list of policies has a provider of the service.
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
